//! A child process of this process, which only this process can reap.

use crate::children;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::signal;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, ChildStdout, ExitStatus};

/// If it is dropped without [`Child::wait`], the process keeps running and is treated as an orphan: see
/// [`reap_orphans`](crate::reap_orphans).
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    identity: Identity,
    /// Whether its pid is in the list of children. Once it is reaped, the pid may be another child's.
    is_listed: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Child {
    pub(crate) const fn new(inner: std::process::Child, identity: Identity) -> Self {
        Self {
            inner,
            identity,
            is_listed: true,
        }
    }

    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The write end of its stdin, once, if that is a pipe.
    pub const fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// The read end of its stdout, once, if that is a pipe.
    pub const fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Waits until it has ended, and reaps it. Blocks. Closes its stdin first, unless the caller has taken it.
    pub fn wait(&mut self) -> Result<Exit> {
        drop(self.inner.stdin.take());
        let status = match self.is_listed {
            true => {
                self.ended()?;
                self.is_listed = false;
                children::on_exit(self.inner.id(), || self.inner.wait())
            }
            // `inner` has the exit status.
            false => self.inner.wait(),
        };
        status
            .map(Exit::of)
            .map_err(|source| self.cannot_wait(source))
    }

    /// Reaps it if it has ended.
    pub fn try_wait(&mut self) -> Result<Option<Exit>> {
        let status = match self.is_listed {
            true => children::on_exit_if_ended(self.inner.id(), || self.inner.try_wait()),
            false => self.inner.try_wait(),
        };
        self.is_listed &= !matches!(status, Ok(Some(_)));
        status
            .map(|status| status.map(Exit::of))
            .map_err(|source| self.cannot_wait(source))
    }

    /// Waits until it has ended, without reaping it.
    fn ended(&self) -> Result<()> {
        let pid = signal::pid(self.identity);
        let Some(pid) = pid else { return Ok(()) };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(pid), look) {
                Err(Errno::INTR) => {}
                // `CHILD`: other code has reaped it.
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
        if self.is_listed {
            children::on_exit(self.inner.id(), || {});
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
