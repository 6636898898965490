//! A process that was started here, and that only we can reap.

use crate::error::{Error, Result};
use crate::identity::Identity;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, ChildStdout, ExitStatus};

/// Let go of without [`Child::wait`] it runs on, and stays a zombie when it ends.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    identity: Identity,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Child {
    pub(crate) const fn new(inner: std::process::Child, identity: Identity) -> Self {
        Self { inner, identity }
    }

    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The writing end of its input, once, where that is a pipe.
    pub const fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// The reading end of its output, once, where that is a pipe.
    pub const fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Waits until it has ended, and reaps it. Blocks. Its input is closed first, if nobody took it.
    pub fn wait(&mut self) -> Result<Exit> {
        self.inner
            .wait()
            .map(Exit::of)
            .map_err(|source| self.cannot_wait(source))
    }

    /// Reaps it if it has ended.
    pub fn try_wait(&mut self) -> Result<Option<Exit>> {
        self.inner
            .try_wait()
            .map(|status| status.map(Exit::of))
            .map_err(|source| self.cannot_wait(source))
    }

    const fn cannot_wait(&self, source: std::io::Error) -> Error {
        Error::CannotWait {
            pid: self.identity.pid,
            source,
        }
    }
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}
