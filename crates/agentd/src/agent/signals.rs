//! The signals that the process handles.

use crate::error::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub enum Told {
    /// SIGINT: end the turn.
    Interrupt,
    /// SIGTERM: finish the work in progress, save, exit.
    Terminate,
}

pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Caught so that it does not end the process; ignored otherwise.
    hangup: Signal,
}

impl Signals {
    pub fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::no_runtime);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Told {
        loop {
            tokio::select! {
                Some(()) = self.interrupt.recv() => return Told::Interrupt,
                Some(()) = self.terminate.recv() => return Told::Terminate,
                Some(()) = self.hangup.recv() => {}
            }
        }
    }
}
