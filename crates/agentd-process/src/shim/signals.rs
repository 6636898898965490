//! The signals of a shim, as bytes in a pipe that it can poll.

use crate::error::{Error, Result};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub struct Signals {
    stop: UnixStream,
    kill: UnixStream,
    child: UnixStream,
}

/// The signals since the last read.
#[derive(Clone, Copy, Default)]
pub struct Heard {
    pub stops: usize,
    pub kills: usize,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let listen = || -> io::Result<Self> {
            // Caught, not ignored: the task would inherit an ignored signal.
            for unheard in [SIGHUP, SIGINT, SIGPIPE] {
                signal_hook::flag::register(unheard, Arc::new(AtomicBool::new(false)))?;
            }
            Ok(Self {
                stop: pipe(SIGTERM)?,
                kill: pipe(SIGQUIT)?,
                child: pipe(SIGCHLD)?,
            })
        };
        listen().map_err(|source| Error::CannotSetUp {
            what: "cannot handle signals",
            source,
        })
    }

    /// The descriptors to poll.
    pub fn sources(&self) -> [BorrowedFd<'_>; 3] {
        [&self.stop, &self.kill, &self.child].map(|it| it.as_fd())
    }

    pub fn take(&mut self) -> Heard {
        count(&mut self.child);
        Heard {
            stops: count(&mut self.stop),
            kills: count(&mut self.kill),
        }
    }
}

fn pipe(signal: i32) -> io::Result<UnixStream> {
    let (ours, handlers) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, handlers)?;
    Ok(ours)
}

fn count(pipe: &mut UnixStream) -> usize {
    let mut bytes = [0; 64];
    let mut all = 0;
    loop {
        match pipe.read(&mut bytes) {
            Ok(0) => return all,
            Ok(length) => all += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return all,
        }
    }
}
