//! The listening socket that a service manager passed to this process.

use rustix::io::{FdFlags, fcntl_setfd};
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor that a service manager passes.
const FIRST: RawFd = 3;
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the socket that was passed as the first descriptor. The caller has checked that the service manager passed one
/// to this process (`LISTEN_PID`, `LISTEN_FDS`), and calls this before it opens any file. No program that this process
/// starts inherits the socket.
pub fn inherited_socket() -> io::Result<UnixListener> {
    let file = std::fs::metadata(format!("/proc/self/fd/{FIRST}"))?;
    if !file.file_type().is_socket() {
        let why = "the descriptor that the service manager passed is not a socket";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        let why = "the socket of the service manager is already in use";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    #[expect(unsafe_code, reason = "an inherited descriptor has no owner yet")]
    // SAFETY: the descriptor is open, it was passed to this process for this purpose, and the check above makes this
    // its only owner.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    Ok(UnixListener::from(socket))
}
