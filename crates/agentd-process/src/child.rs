//! A process that was started here, and that only we can reap.

use crate::children;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::signal;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, ChildStdout, ExitStatus};

/// Let go of without [`Child::wait`] it runs on, and is an orphan like any other: see
/// [`reap_orphans`](crate::reap_orphans).
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
        drop(self.inner.stdin.take());
        let pid = self.inner.id();
        self.ended()?;
        let status = children::on_exit(pid, || self.inner.wait());
        status
            .map(Exit::of)
            .map_err(|source| self.cannot_wait(source))
    }

    /// Reaps it if it has ended.
    pub fn try_wait(&mut self) -> Result<Option<Exit>> {
        let status = self.inner.try_wait();
        status
            .map(|status| status.map(Exit::of))
            .map_err(|source| self.cannot_wait(source))
    }

    /// Waits until it has ended, and leaves it to be reaped.
    fn ended(&self) -> Result<()> {
        let pid = signal::pid(self.identity);
        let Some(pid) = pid else { return Ok(()) };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(pid), look) {
                Err(Errno::INTR) => {}
                // It was reaped before, and its end is known.
                Ok(_) | Err(Errno::CHILD) => return Ok(()),
                Err(errno) => return Err(self.cannot_wait(errno.into())),
            }
        }
    }

    const fn cannot_wait(&self, source: std::io::Error) -> Error {
        Error::CannotWait {
            pid: self.identity.pid,
            source,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        children::on_exit(self.inner.id(), || {});
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
