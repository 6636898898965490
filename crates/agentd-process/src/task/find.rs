//! The state of a task, from its directory alone.

use super::claim::{self, By, IsHeld, Origin};
use super::record::{Exit, Running};
use super::task_dir::{self, TaskDir};
use super::{Task, sweep};
use crate::boot::boot_id;
use crate::error::Result;
use crate::identity::Identity;
use std::path::Path;

#[derive(Clone, Debug)]
pub enum Found {
    /// It was not started, and never will be.
    NeverStarted,
    Running(Task),
    Ended(Exit),
    /// It may have run completely or partly. [`find`] and [`withdraw`] have ended the processes that were left of it,
    /// unless the directory is a copy.
    Unknown,
}

/// The state of a task. A task that has not been started is prevented from starting.
///
/// `boot` is the [`boot_id`] under which it was to be started, if the caller knows it: after a reboot only its exit
/// file counts. Blocks while it kills the processes that a killed shim left behind. Creates a missing directory,
/// because the claim must be in it.
pub fn find(dir: &Path, boot: Option<&str>) -> Result<Found> {
    resolve(dir, boot, By::Recovery)
}

/// Whether this process is the shim of the task with this directory, according to the record that the shim wrote.
pub(crate) fn is_shim_of(dir: &Path, process: Identity) -> bool {
    let running = task_dir::read::<Running>(&dir.join(task_dir::RUNNING));
    matches!(running, Ok(Some(running)) if running.shim == process)
}

/// How a task ended, if it did. For tasks of an earlier boot, or of a home that this one is a copy of: nothing is
/// claimed, and no process is signalled.
pub fn find_ended(dir: &Path) -> Result<Found> {
    let exit = task_dir::read(&dir.join(task_dir::EXIT))?;
    Ok(exit.map_or(Found::Unknown, Found::Ended))
}

/// Whether the directory is left of a task that has no process and no recorded end: it was never started, or its shim was
/// killed. Claims nothing, and signals no process.
pub fn is_left(dir: &Path) -> Result<bool> {
    let task_dir = TaskDir::make(dir)?;
    if ended(&task_dir)?.is_some() {
        return Ok(false);
    }
    let running = task_dir::read::<Running>(&task_dir.running())?;
    let leader = running.and_then(|running| running.leader);
    if leader.map_or(Ok(false), Identity::is_alive)? {
        return Ok(false);
    }
    let claimed = claim::look(&task_dir)?;
    Ok(claimed.is_none_or(|claimed| claimed.held == IsHeld::No))
}

/// Withdraws a task that has not been started yet; otherwise returns its state.
pub fn withdraw(dir: &Path) -> Result<Found> {
    resolve(dir, None, By::Interrupt)
}

fn resolve(dir: &Path, boot: Option<&str>, by: By) -> Result<Found> {
    let task_dir = TaskDir::make(dir)?;
    if let Some(exit) = ended(&task_dir)? {
        return Ok(Found::Ended(exit));
    }
    if let Some(boot) = boot
        && boot != boot_id()?
    {
        return Ok(Found::Unknown);
    }
    if claim::take(&task_dir, by)?.is_some() {
        return Ok(Found::NeverStarted);
    }
    let Some(claimed) = claim::look(&task_dir)? else {
        // The machine crashed before the claim's content was on disk, or another process is removing the directory.
        return Ok(Found::Unknown);
    };
    let record = claimed.record;
    if record.by != By::Shim {
        return Ok(Found::NeverStarted);
    }
    let of_now = record.is_of_now()?;
    if of_now && claimed.held == IsHeld::Yes && record.process.is_alive()? {
        return Ok(Found::Running(Task::new(task_dir, record.process)));
    }
    // It may have ended between the first check and this one.
    if let Some(exit) = ended(&task_dir)? {
        return Ok(Found::Ended(exit));
    }
    // The processes that a copied directory names belong to the original, which may still be running.
    if of_now && claimed.origin == Origin::Original {
        sweep::sweep(&task_dir, record.process)?;
    }
    Ok(Found::Unknown)
}

fn ended(task_dir: &TaskDir) -> Result<Option<Exit>> {
    task_dir::read(&task_dir.exit())
}
