//! The life cycle of a shim.

use super::leader::{self, Leader};
use super::owner::Owner;
use super::signals::Signals;
use super::watch::{Watch, millis};
use crate::boot::boot_id;
use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::memory::{SHIM_BYTES, limit_own_memory};
use crate::task::{By, Exit, Order, Running, TaskDir, take, write, write_for_good};
use agentd_failpoint::{self as failpoint, plan::Role};
use agentd_sandbox::OwnHome;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior, setsid,
};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two attempts to write to a full disk.
const FULL: Duration = Duration::from_millis(100);

/// The exit code of the shim. No process depends on it: everything about the task is in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task has ended, or another process had the claim.
    Done = 0,
    /// An error; the directory shows how far it got.
    Failed = 1,
    /// It got no complete order.
    Nothing = 2,
}

pub fn live(dir: &Path) -> Outcome {
    // A shim has no way to report an error. The files that are missing from the directory show how far it got.
    run(dir).unwrap_or(Outcome::Failed)
}

fn run(dir: &Path) -> Result<Outcome> {
    let mut signals = Signals::listen()?;
    stand_alone().map_err(|errno| Error::CannotSetUp {
        what: "cannot detach from the parent",
        source: errno.into(),
    })?;
    let Some(order) = order() else {
        return Ok(Outcome::Nothing);
    };
    // Now, and not earlier: before it sent the order, the process that started us restored our limit.
    drop(limit_own_memory(SHIM_BYTES));
    // It is not created: a task whose directory was removed never runs.
    let task_dir = TaskDir::existing(dir)?;
    if let Some(lab) = &order.lab
        && failpoint::enter(lab, task_dir.path(), Role::Shim).is_err()
    {
        return Ok(Outcome::Nothing);
    }
    if failpoint::injected_bug("processes_open") {
        let _bug = set_dumpable_behavior(DumpableBehavior::Dumpable);
    }
    failpoint::hit("after", "order");
    let heard = signals.take();
    if heard.stops + heard.kills > 0 {
        return Ok(Outcome::Done);
    }
    // Held until this process ends.
    let Some(_claim) = take(&task_dir, By::Shim)? else {
        return Ok(Outcome::Done);
    };
    let me = Identity::current()?;
    let cgroup = Cgroup::make(me);
    let policy = order.confined.as_ref().map(|confined| &confined.policy);
    let own_home = policy.and_then(|policy| Some((policy, OwnHome::now(policy)?)));
    let mut exit = task(&order, &task_dir, me, &mut signals, cgroup.as_ref())?;
    exit.foreground = order.foreground;
    if let Some((policy, before)) = own_home {
        exit.in_own_home = before.new_entries(policy);
    }
    if let Some(cgroup) = &cgroup {
        cgroup.remove();
    }
    write_exit(&task_dir, &exit)?;
    Ok(Outcome::Done)
}

/// Records how the task ended. On a full disk it waits for space: until then the task counts as running, and afterwards
/// its exit is known.
fn write_exit(task_dir: &TaskDir, exit: &Exit) -> Result<()> {
    loop {
        match write_for_good(&task_dir.exit(), exit) {
            Err(Error::CannotUse { source, .. }) if is_full(&source) => {
                // tidy: polls until there is room
                std::thread::sleep(FULL);
            }
            written => return written,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), QuotaExceeded | StorageFull)
}

/// Detaches from the terminal and the group of the process that started us, makes our memory unreadable to other
/// processes, and makes us the process that adopts all orphans of the task.
fn stand_alone() -> Result<(), Errno> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    match setsid() {
        // We already lead a group or a session.
        Ok(_) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    set_child_subreaper(Some(getpid()))
}

/// Reads the order from stdin. `None` if it is incomplete, because the process that was sending it is gone.
fn order() -> Option<Order> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn task(
    order: &Order,
    task_dir: &TaskDir,
    me: Identity,
    signals: &mut Signals,
    cgroup: Option<&Cgroup>,
) -> Result<Exit> {
    let heard = signals.take();
    if heard.stops + heard.kills > 0 {
        return Ok(Exit {
            stopped: true,
            ..Exit::default()
        });
    }
    let stopped = Exit {
        stopped: true,
        ..Exit::default()
    };
    let owner = match order.owner.map(Owner::watch) {
        None => None,
        Some(Ok(Some(owner))) => Some(owner),
        // It is gone, or cannot be watched.
        Some(_) => return Ok(stopped),
    };
    let begin = Instant::now();
    let leader = match start(order, task_dir, me, cgroup) {
        Ok(started) => started,
        Err(error) => {
            return Ok(Exit {
                duration_ms: millis(begin.elapsed()),
                error: Some(error.to_string()),
                ..Exit::default()
            });
        }
    };
    failpoint::hit("after", "start");
    let watch = Watch {
        order,
        signals,
        leader,
        cgroup,
        begin,
        owner,
    };
    watch.until_the_end()
}

/// An error means that nothing was started.
fn start(
    order: &Order,
    task_dir: &TaskDir,
    me: Identity,
    cgroup: Option<&Cgroup>,
) -> Result<Leader> {
    let mut running = Running {
        shim: me,
        leader: None,
        boot: boot_id()?,
        cgroup: cgroup.map(|cgroup| cgroup.path().to_owned()),
    };
    // Before the program runs, so that the cgroup is known even if we are killed right after.
    write(&task_dir.running(), &running)?;
    let leader = leader::start(order, task_dir, cgroup)?;
    running.leader = Some(leader.identity);
    // The program runs, so an error here is ignored: without this record, recovery finds the program by our session.
    drop(write(&task_dir.running(), &running));
    Ok(leader)
}
