//! Ending what is left of a task whose shim was killed.

use super::claim::{self, IsHeld};
use super::record::Running;
use super::task_dir::{self, TaskDir};
use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::identity::Identity;
use crate::snapshot::Snapshot;
use crate::tree::Hunt;
use std::time::{Duration, Instant};

/// A child of the shim that was just about to become the program has the lock for a moment longer.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Kills whoever is in the task's cgroup, in the session of its shim or in the group of its program,
/// and everybody below. What left all of these before the shim was killed is not found: where no
/// cgroup can be made, a program that makes its own session and gives up its parents can do that.
pub fn sweep(task_dir: &TaskDir, shim: Identity) -> Result<()> {
    wait_for_the_lock(task_dir)?;
    let running: Option<Running> = task_dir::read(&task_dir.running())?;
    let running = running.filter(|running| running.shim == shim);
    let path = running
        .as_ref()
        .and_then(|running| running.cgroup.as_deref());
    let cgroup = path.and_then(|path| Cgroup::at(path, shim));
    let leader = running.as_ref().and_then(|running| running.leader);
    if let Some(cgroup) = &cgroup {
        cgroup.kill();
    }
    Hunt::new(leader, |snapshot| related(snapshot, shim, leader)).end(Duration::ZERO)?;
    if let Some(cgroup) = &cgroup {
        cgroup.remove();
    }
    Ok(())
}

fn wait_for_the_lock(task_dir: &TaskDir) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let claimed = claim::look(task_dir)?;
        if claimed.is_none_or(|claimed| claimed.held == IsHeld::No) {
            break;
        }
        // tidy: polls until the lock is free
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Sessions and groups are named after a pid, which nobody else gets while one of them is in use: if
/// another process has it, there is nobody left in them.
fn related(snapshot: &Snapshot, shim: Identity, leader: Option<Identity>) -> Vec<Identity> {
    let is_free = |named_after: Identity| {
        let holder = snapshot.holder(named_after.pid);
        holder.is_none_or(|holder| holder == named_after)
    };
    let session = is_free(shim).then_some(shim.pid);
    let group = leader.filter(|leader| is_free(*leader)).map(|it| it.pid);
    snapshot
        .all_that(|stat| {
            let young = stat.start_ticks >= shim.start_ticks;
            young && (Some(stat.session) == session || Some(stat.group) == group)
        })
        .collect()
}
