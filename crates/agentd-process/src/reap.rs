//! Orphans: whoever has lost its parent comes to us, and is buried by us.

use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use rustix::process::{Pid, WaitId, WaitIdOptions, set_child_subreaper, waitid};

/// From now on, processes below this one that lose their parent become its children.
pub fn adopt_orphans() -> Result<()> {
    let me = rustix::process::getpid();
    set_child_subreaper(Some(me)).map_err(|errno| Error::CannotWait {
        pid: std::process::id(),
        source: errno.into(),
    })
}

/// Reaps those children that have ended, but for the ones that somebody waits for.
pub fn reap_orphans(is_waited_for: impl Fn(u32) -> bool) -> Result<()> {
    let snapshot = Snapshot::take()?;
    let me = std::process::id();
    let ended = snapshot.all_that(|stat| stat.parent == me && stat.has_ended());
    for one in ended.filter(|one| !is_waited_for(one.pid)) {
        let pid = i32::try_from(one.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Somebody else may have done it.
            let _reaped = waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            );
        }
    }
    Ok(())
}
