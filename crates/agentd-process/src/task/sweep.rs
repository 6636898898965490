//! Ending the processes that are left of a task whose shim was killed.

use super::claim::{self, IsHeld};
use super::record::Running;
use super::task_dir::{self, TaskDir};
use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::identity::Identity;
use crate::snapshot::Snapshot;
use crate::tree::Hunt;
use std::time::{Duration, Instant};

/// How long to wait for the lock. A child that the shim has forked holds it until it executes the program.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Kills all processes in the task's cgroup, in the session of its shim or in the group of its program, and all their
/// descendants. A process that left all of these before the shim was killed is not found: without a cgroup, a program
/// can do that by creating a session and detaching from its parents.
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

/// A session or group is named after a pid, which is not reused while it has members: if another process has the pid,
/// the session or group is empty.
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
