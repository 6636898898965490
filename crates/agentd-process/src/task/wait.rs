//! Waiting for the end of a process, which need not be a child.

use crate::children;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::signal;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits until a process has ended; the caller need not be its parent. A zombie has ended. Needs a tokio runtime with
/// IO.
pub async fn ended(one: Identity) -> Result<()> {
    if let Some(handle) = handle(one)? {
        readable(one, &handle).await?;
    }
    Ok(())
}

/// Reaps this child when it ends.
pub fn reap(child: Identity) -> Result<()> {
    let Some(handle) = handle(child)? else {
        return Ok(());
    };
    tokio::spawn(async move {
        if readable(child, &handle).await.is_ok() {
            // It may have been reaped already.
            let shim = WaitId::PidFd(handle.get_ref().as_fd());
            let _ = children::on_exit(child.pid, || waitid(shim, WaitIdOptions::EXITED));
        }
    });
    Ok(())
}

/// `None` if it is gone.
fn handle(one: Identity) -> Result<Option<AsyncFd<OwnedFd>>> {
    let Some(pid) = signal::pid(one) else {
        return Ok(None);
    };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(cannot_wait(one, errno.into())),
    };
    // Checked after the handle is open: from here on the pid may be reused, but not the handle.
    if one.look()?.is_none() {
        return Ok(None);
    }
    #[expect(unsafe_code, reason = "tokio has no other way to wait for any handle")]
    // SAFETY: the handle is open. The `AsyncFd` owns it and lends it only as borrowed, so it stays open and the same.
    let handle = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    handle
        .map(Some)
        .map_err(|error| cannot_wait(one, error.into()))
}

async fn readable(one: Identity, handle: &AsyncFd<OwnedFd>) -> Result<()> {
    match handle.readable().await {
        Ok(_) => Ok(()),
        Err(source) => Err(cannot_wait(one, source)),
    }
}

const fn cannot_wait(one: Identity, source: io::Error) -> Error {
    Error::CannotWait {
        pid: one.pid,
        source,
    }
}
