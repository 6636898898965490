//! What other processes know about a [`shim`](crate::shim): the argument that starts one, the signals that it obeys,
//! and how to recognise one.

use crate::signal::Signal;
use agentd_files::own;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The first argument that makes this program a shim; the second one is the task's directory.
pub const ARGUMENT: &str = "--agentd-shim";

/// Asks a shim to end its task. If it is sent again, the shim skips the rest of the grace period.
pub const STOP: Signal = Signal::TERM;
/// Asks a shim to end its task without a grace period. A separate signal, because two [`STOP`]s may arrive as one.
pub const KILL: Signal = Signal::QUIT;

/// Whether the process is a shim, according to its arguments.
pub fn is_shim(pid: u32) -> bool {
    dir_of(pid).is_some()
}

/// The directory of its task, if the process is a shim.
pub fn dir_of(pid: u32) -> Option<PathBuf> {
    let args = own::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut args = args.split(|byte| *byte == 0);
    args.find(|arg| *arg == ARGUMENT.as_bytes())?;
    let task_dir = args.next().unwrap_or_default();
    Some(PathBuf::from(OsStr::from_bytes(task_dir)))
}
