//! The process at the other end of a socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use tokio::net::UnixStream;

/// The process that opened a connection. The kernel may reuse its pid once the process has ended: a caller that reads
/// `/proc` by pid must check [`Peer::is_alive`] afterwards.
#[derive(Debug)]
pub struct Peer {
    pid: u32,
    uid: u32,
    process: Option<OwnedFd>,
}

impl Peer {
    pub fn of(socket: &UnixStream) -> io::Result<Self> {
        let cred = socket.peer_cred()?;
        // The kernel reports 0 for a process outside of our PID namespace.
        let pid = cred.pid().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let process = match peer_pidfd(socket.as_raw_fd()) {
            // Linux before 6.5 has no SO_PEERPIDFD. With this fallback, another process may already have the pid.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                pidfd_open(pid, PidfdFlags::empty()).ok()
            }
            found => found.ok(),
        };
        Ok(Self {
            pid: pid.as_raw_nonzero().get().unsigned_abs(),
            uid: cred.uid(),
            process,
        })
    }

    pub const fn pid(&self) -> u32 {
        self.pid
    }

    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether the process still runs. If so, its pid has not been reused.
    pub fn is_alive(&self) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }
}

fn peer_pidfd(socket: i32) -> io::Result<OwnedFd> {
    let mut fd: libc::c_int = -1;
    let mut size = size_of_val(&fd) as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix does not have this option")]
    // SAFETY: the pointers refer to a `c_int` and to its size. The kernel returns a new descriptor, which only we own.
    unsafe {
        let asked = libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut size,
        );
        match asked {
            0 if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            0 => Err(io::ErrorKind::NotFound.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
