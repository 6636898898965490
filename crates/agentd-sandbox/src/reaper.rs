//! The life of PID 1: it reaps, passes TERM on, and tells how the leader ended.

use crate::planted::Watch;
use crate::sys;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use std::os::fd::OwnedFd;

/// What a shell says for a program that a signal ended.
const BY_SIGNAL: i32 = 128;

/// Returns the code to exit with. Whatever still runs in the namespace is killed by the kernel then.
pub fn run(leader: i32, foreground: bool, watch: &Watch, report: &OwnedFd) -> i32 {
    let mut code = 1;
    loop {
        if watch.is_planted() {
            // As if the kernel had refused the system call that made it.
            return tell(libc::SIGSYS, report);
        }
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if pid.as_raw_nonzero().get() == leader {
                    code = tell(status.as_raw(), report);
                    if foreground {
                        return code;
                    }
                }
            }
            // Every signal is blocked: one that came before this line is still pending.
            Ok(None) => {
                if sys::wait_for_signal() == libc::SIGTERM {
                    sys::signal_all(libc::SIGTERM);
                    // One that is stopped hears nothing before it goes on.
                    sys::signal_all(libc::SIGCONT);
                }
            }
            Err(Errno::INTR) => {}
            // Orphans come to PID 1, so nobody is left.
            Err(_) => return code,
        }
    }
}

fn tell(status: i32, report: &OwnedFd) -> i32 {
    // The shim is gone if this fails, and so are we in a moment.
    let _ = rustix::io::write(report, &status.to_ne_bytes());
    if libc::WIFSIGNALED(status) {
        return BY_SIGNAL + libc::WTERMSIG(status);
    }
    libc::WEXITSTATUS(status)
}
