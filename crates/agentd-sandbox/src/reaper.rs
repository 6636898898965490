//! The main loop of PID 1: it reaps, passes SIGTERM on, and reports how the leader ended.

use crate::git::planted::Watch;
use crate::sys;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use std::os::fd::OwnedFd;

/// The exit code of a shell for a program that a signal ended: 128 plus the signal.
const BY_SIGNAL: i32 = 128;

/// Returns the exit code. When PID 1 exits, the kernel kills all processes that are left in the namespace.
pub fn run(leader: i32, foreground: bool, watch: &mut Watch, report: &OwnedFd) -> i32 {
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
                    // A stopped process receives the signal only after SIGCONT.
                    sys::signal_all(libc::SIGCONT);
                }
            }
            Err(Errno::INTR) => {}
            // PID 1 adopts orphans, so no process is left.
            Err(_) => return code,
        }
    }
}

fn tell(status: i32, report: &OwnedFd) -> i32 {
    // If this fails, the shim is gone, and this process ends in a moment too.
    let _ = rustix::io::write(report, &status.to_ne_bytes());
    if libc::WIFSIGNALED(status) {
        return BY_SIGNAL + libc::WTERMSIG(status);
    }
    libc::WEXITSTATUS(status)
}
