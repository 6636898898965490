//! A shim's life, from the first step to the last.

use super::leader::{self, Leader};
use super::signals::Signals;
use super::watch::{Watch, millis};
use crate::boot::boot_id;
use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::failpoint::{self, plan::Role};
use crate::identity::Identity;
use crate::task::{By, Exit, Order, Running, TaskDir, take, write, write_for_good};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior, setsid,
};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two tries to write to a full disk.
const FULL: Duration = Duration::from_millis(100);

/// What the shim returns. Nobody needs to know: the task's directory tells it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task has ended, or somebody else had the claim.
    Done = 0,
    /// Something was in the way; how far it came shows in the directory.
    Failed = 1,
    /// It was not told what to do.
    Nothing = 2,
}

pub fn live(dir: &Path) -> Outcome {
    // Nobody listens to a shim: an error shows in what is not in the directory.
    run(dir).unwrap_or(Outcome::Failed)
}

fn run(dir: &Path) -> Result<Outcome> {
    let mut signals = Signals::listen()?;
    stand_alone().map_err(|errno| Error::CannotSetUp {
        what: "cannot stand alone",
        source: errno.into(),
    })?;
    let Some(order) = order() else {
        return Ok(Outcome::Nothing);
    };
    let task_dir = TaskDir::make(dir)?;
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
    // Held for as long as this process lives: it is never dropped before.
    let Some(_claim) = take(&task_dir, By::Shim)? else {
        return Ok(Outcome::Done);
    };
    let me = Identity::current()?;
    let cgroup = Cgroup::make(me);
    let exit = task(&order, &task_dir, me, &mut signals, cgroup.as_ref())?;
    if let Some(cgroup) = &cgroup {
        cgroup.remove();
    }
    write_exit(&task_dir, &exit)?;
    Ok(Outcome::Done)
}

/// Writes down how the task ended. On a full disk it waits for room: until then the task counts as one that runs, and
/// afterwards it is known how it ended.
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

/// Away from the terminal and the group of whoever started us, unreadable to others, and the one to
/// whom all orphans of the task go.
fn stand_alone() -> Result<(), Errno> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    match setsid() {
        // We lead a group, or a session already.
        Ok(_) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    set_child_subreaper(Some(getpid()))
}

/// None where it is not whole: whoever wanted to hand it to us is gone.
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
    // Before the program runs: should we be killed right after, the cgroup is known.
    write(&task_dir.running(), &running)?;
    let leader = leader::start(order, task_dir, cgroup)?;
    running.leader = Some(leader.identity);
    // It runs, so there is no way back: without this it is found by our session.
    drop(write(&task_dir.running(), &running));
    Ok(leader)
}
