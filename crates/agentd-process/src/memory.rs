//! A bound on the memory of agentd's own processes, which the programs that they start do not inherit.
//!
//! A file or a program that makes one of them allocate without end ends that process, and not the machine.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;
use std::sync::OnceLock;

/// For runtimes, and for processes that read and write files.
pub const RUNTIME_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// A shim copies output in small pieces.
pub(crate) const SHIM_BYTES: u64 = 256 * 1024 * 1024;

/// The limit before it was lowered. Written once, when the process begins.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Bounds the private memory of this process. Lowers only the soft limit, so that it can be restored for programs.
pub fn limit_own_memory(bytes: u64) -> io::Result<()> {
    let original = *ORIGINAL.get_or_init(|| getrlimit(Resource::Data));
    let current = original.current.map_or(bytes, |ours| ours.min(bytes));
    let lower = Rlimit {
        current: Some(current),
        maximum: original.maximum,
    };
    Ok(setrlimit(Resource::Data, lower)?)
}

/// The limit for programs, if this process has lowered its own.
pub(crate) fn original() -> Option<Rlimit> {
    ORIGINAL.get().copied()
}

/// Restores the limit of a child that this process has just started.
pub(crate) fn restore_for(child: u32) {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(original)) = (pid, original()) {
        // It fails if the child has ended.
        let _ended = prlimit(Some(pid), Resource::Data, original);
    }
}
