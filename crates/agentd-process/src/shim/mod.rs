//! The shim: the process that runs one task and outlives the runtime and the daemon.
//!
//! It is this program, started again with a hidden argument. It wins the claim on its task or does nothing. It starts
//! the program, stores its output, reaps the task's processes, ends them when that is due, and records how the task
//! ended. It knows only the order that it was given.

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

/// The first argument that makes this program a shim; the second one is the task's directory.
pub const ARGUMENT: &str = "--agentd-shim";

/// Asks a shim to end its task; a second one, to do so without a grace period.
pub(crate) const STOP: Signal = Signal::TERM;
/// Asks a shim to end its task without a grace period. A separate signal, because two equal ones may arrive as one.
pub(crate) const KILL: Signal = Signal::QUIT;

/// If this process was started as a shim: runs it and never returns. Call it with the process's own arguments, program
/// name first, before anything else.
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

/// Whether the process is a shim, according to its arguments.
pub(crate) fn is_shim(pid: u32) -> bool {
    dir_of(pid).is_some()
}

/// The directory of its task, if the process is a shim.
pub(crate) fn dir_of(pid: u32) -> Option<PathBuf> {
    let args = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut args = args.split(|byte| *byte == 0);
    args.find(|arg| *arg == ARGUMENT.as_bytes())?;
    let task_dir = args.next().unwrap_or_default();
    Some(PathBuf::from(OsStr::from_bytes(task_dir)))
}
