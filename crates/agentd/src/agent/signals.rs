//! What the process is told from outside.

use crate::error::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub enum Told {
    /// SIGINT: the turn is to end.
    Interrupt,
    /// SIGTERM: finish what is in hand, save, end.
    Terminate,
}

pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Heard, and nothing more.
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
