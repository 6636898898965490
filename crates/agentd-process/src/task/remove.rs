//! Removing the directory of a task whose end is recorded elsewhere.

use super::find::{Found, find};
use super::task_dir::cannot;
use crate::error::Result;
use agentd_failpoint as failpoint;
use std::fs;
use std::io;
use std::path::Path;

/// What a directory is called while it is removed: no id of a task ends like this.
const REMOVED: &str = "removed";

/// Removes the directory of a task that has ended, or that never ran; false if it is running. A task that was not started
/// is prevented from starting. The caller ensures that its end is recorded: afterwards nothing tells how it ended.
///
/// The directory gets another name first, so that no process ever sees a part of it. [`remove_rest`] removes what is left
/// if this process is killed.
pub fn remove(dir: &Path) -> Result<bool> {
    if let Found::Running(_) = find(dir, None)? {
        return Ok(false);
    }
    let removed = dir.with_extension(REMOVED);
    gone(fs::remove_dir_all(&removed)).map_err(|source| cannot(&removed, source))?;
    failpoint::hit("before", "task-remove");
    gone(fs::rename(dir, &removed)).map_err(|source| cannot(dir, source))?;
    failpoint::hit("in", "task-remove");
    gone(fs::remove_dir_all(&removed)).map_err(|source| cannot(&removed, source))?;
    Ok(true)
}

/// Removes what a killed process left of directories in `tasks`.
pub fn remove_rest(tasks: &Path) -> Result<()> {
    let entries = match fs::read_dir(tasks) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|source| cannot(tasks, source))?,
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|it| it == REMOVED) {
            gone(fs::remove_dir_all(&path)).map_err(|source| cannot(&path, source))?;
        }
    }
    Ok(())
}

/// Another process may remove the same.
fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
