//! The number of files that the daemon may have open. Programs that it starts do not inherit the raised limit.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;
use std::sync::OnceLock;

/// The limit before it was raised. Written once, when the process begins.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of this process to `wanted`, or as far as the hard limit allows. Returns the limit that holds now.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let original = *ORIGINAL.get_or_init(|| getrlimit(Resource::Nofile));
    let allowed = original.maximum.map_or(wanted, |most| most.min(wanted));
    let current = original.current.map_or(u64::MAX, |ours| ours.max(allowed));
    if original.current.is_some_and(|ours| ours < current) {
        let raised = Rlimit {
            current: Some(current),
            maximum: original.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(current)
}

/// Restores the limit of a child that this process has just started: programs that use `select` expect a low one.
pub(crate) fn restore_for(child: u32) {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(original)) = (pid, ORIGINAL.get()) {
        // It fails if the child has ended.
        let _ended = prlimit(Some(pid), Resource::Nofile, *original);
    }
}
