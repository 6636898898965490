//! Orphans: processes whose parent has died are adopted and reaped by this process.

use crate::children;
use crate::error::{Error, Result};
use crate::shim_protocol::is_shim;
use crate::snapshot::Snapshot;
use crate::tree::Hunt;
use agentd_files::own;
use rustix::process::{Pid, WaitId, WaitIdOptions, set_child_subreaper, waitid};
use std::time::Duration;

/// From now on, a descendant of this process whose parent ends becomes its child.
pub fn adopt_orphans() -> Result<()> {
    let me = rustix::process::getpid();
    set_child_subreaper(Some(me)).map_err(|errno| Error::CannotWait {
        pid: std::process::id(),
        source: errno.into(),
    })
}

/// Reaps the children that have ended, except those that this process started and waits for.
pub fn reap_orphans() -> Result<()> {
    children::with(|is_waited_for| {
        let snapshot = Snapshot::take()?;
        let me = std::process::id();
        let ended = snapshot.all_that(|stat| stat.parent == me && stat.has_ended());
        for one in ended.filter(|one| !is_waited_for(one.pid)) {
            let pid = i32::try_from(one.pid).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let reap = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
                // Another thread may have reaped it.
                let _reaped = waitid(WaitId::Pid(pid), reap);
            }
        }
        Ok(())
    })
}

/// Kills the orphans that have this entry in their environment, with all their descendants up to the next shim. Tasks,
/// and children that this process waits for, are not killed. Blocks until none is left.
pub fn kill_orphans(name: &str, value: &str) -> Result<()> {
    let entry = format!("{name}={value}");
    let mut hunt = Hunt::new([], |snapshot: &Snapshot| {
        let me = std::process::id();
        children::with(|is_waited_for| {
            let orphans = snapshot.all_that(|stat| stat.parent == me);
            let orphans = orphans.filter(|one| !is_waited_for(one.pid));
            let orphans = orphans.filter(|one| has_entry(one.pid, entry.as_bytes()));
            orphans.filter(|one| !is_shim(one.pid)).collect()
        })
    });
    hunt.stop_at_shims = true;
    hunt.end(Duration::ZERO)
}

fn has_entry(pid: u32, entry: &[u8]) -> bool {
    let environ = own::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|one| one == entry)
}
