//! The owner of an attached task: the process that uses the program's stdin and stdout. The task ends with it.

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// A handle on the owner: it cannot be mistaken for another process with the same pid.
pub struct Owner(OwnedFd);

impl Owner {
    /// `None` if it is gone.
    pub fn watch(owner: Identity) -> Result<Option<Self>> {
        let Some(pid) = signal::pid(owner) else {
            return Ok(None);
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(errno) => {
                let source = errno.into();
                let pid = owner.pid;
                return Err(Error::CannotWait { pid, source });
            }
        };
        // Checked after the handle is open: from here on the pid may be reused, but not the handle.
        Ok(owner.look()?.map(|_| Self(handle)))
    }

    /// The descriptor to poll. It is readable once the owner has ended.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn is_gone(&self) -> bool {
        let mut sources = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut sources, Some(&now)), Ok(ready) if ready > 0)
    }
}

/// The program's stdin and stdout, which the owner passed as our stderr and stdout. Afterwards these are `/dev/null`.
pub fn take_pipes() -> io::Result<(OwnedFd, OwnedFd)> {
    let stdin = io::stderr().as_fd().try_clone_to_owned()?;
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok((stdin, stdout))
}
