//! The shim: a process between a task and everybody else, which stays when they go.
//!
//! It is this very program, started again with a hidden argument. It wins the claim on its task or
//! does nothing, starts the program, takes its output, reaps what the task leaves behind, ends all of
//! it when that is due, and writes down how it ended. It knows nothing but the order it was given.

mod gate;
mod leader;
mod life;
mod pump;
mod redact;
mod signals;
mod tree;
mod watch;

pub use gate::ARGUMENT as GATE_ARGUMENT;

use crate::signal::Signal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// What makes a program a shim, as its first argument; the second one is the task's directory.
pub const ARGUMENT: &str = "--agentd-shim";

/// Asks a shim to end its task; a second one, to do so without grace.
pub(crate) const STOP: Signal = Signal::TERM;
/// Asks a shim to end its task without grace. One of its own, for two equal ones may arrive as one.
pub(crate) const KILL: Signal = Signal::QUIT;

/// If this process was started as a shim: is one, and never comes back. To be called with the
/// process's own arguments, the name of the program first, before anything else is done.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        let code = match args.next() {
            Some(dir) => life::live(&PathBuf::from(dir)),
            None => life::Outcome::Nothing,
        };
        std::process::exit(code as i32);
    }
}

/// Whether the process is a shim, as its arguments tell.
pub(crate) fn is_shim(pid: u32) -> bool {
    dir_of(pid).is_some()
}

/// The directory of its task, where the process is a shim.
pub(crate) fn dir_of(pid: u32) -> Option<PathBuf> {
    let args = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut args = args.split(|byte| *byte == 0);
    args.find(|arg| *arg == ARGUMENT.as_bytes())?;
    let task_dir = args.next().unwrap_or_default();
    Some(PathBuf::from(OsStr::from_bytes(task_dir)))
}
