//! What became of a task, told from its directory alone.

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
    /// It was not, and it never will be.
    NeverStarted,
    Running(Task),
    Ended(Exit),
    /// It may have run, or a part of it, and nobody can say how far. Whatever was left of it has been
    /// ended.
    Unknown,
}

/// What became of a task. One that has not been started by now will not be any more.
///
/// `boot` is the [`boot_id`] under which it was to be started, where the caller knows: after another
/// start of the system all that counts is how it ended. May take a moment: whatever a shim that was
/// killed left behind is killed too. A directory that is not there is made, for the claim.
pub fn find(dir: &Path, boot: Option<&str>) -> Result<Found> {
    resolve(dir, boot, By::Recovery)
}

/// Whether this process is the shim of the task with this directory, by the record that the shim wrote.
pub(crate) fn is_shim_of(dir: &Path, process: Identity) -> bool {
    let running = task_dir::read::<Running>(&dir.join(task_dir::RUNNING));
    matches!(running, Ok(Some(running)) if running.shim == process)
}

/// How a task ended, where it did: all that counts for one that was started by somebody else's boot, or in a home
/// that this one was copied from. Nothing is claimed, and nobody is signalled.
pub fn find_ended(dir: &Path) -> Result<Found> {
    let exit = task_dir::read(&dir.join(task_dir::EXIT))?;
    Ok(exit.map_or(Found::Unknown, Found::Ended))
}

/// Takes a task back, if it has not been started yet; otherwise says what became of it.
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
        // The system went down meanwhile, or somebody removes the directory under us.
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
    // It may have ended well between the first look and the second.
    if let Some(exit) = ended(&task_dir)? {
        return Ok(Found::Ended(exit));
    }
    // The processes that a copy of the directory names are the original's, which may be alive and well.
    if of_now && claimed.origin == Origin::Original {
        sweep::sweep(&task_dir, record.process)?;
    }
    Ok(Found::Unknown)
}

fn ended(task_dir: &TaskDir) -> Result<Option<Exit>> {
    task_dir::read(&task_dir.exit())
}
