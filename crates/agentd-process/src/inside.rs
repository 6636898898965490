//! Whether a process belongs to a task.

use crate::cgroup;
use crate::error::{Error, Result};
use crate::shim;
use crate::stat;
use std::fs;
use std::path::PathBuf;

/// Generations that are looked at; more than any real tree has.
const GENERATIONS: usize = 256;

/// Whether a process was started by a task, and is under its shim or in its cgroup still. An error where
/// there is no such process.
pub fn is_in_task(pid: u32) -> Result<bool> {
    Ok(task_around(pid)? != Around::None)
}

/// What a process runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Around {
    None,
    /// The task with this folder.
    Task(PathBuf),
    /// A task that it does not say the name of any more.
    Unnamed,
}

/// The task that a process was started by, the innermost where there are several.
pub fn task_around(pid: u32) -> Result<Around> {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let outside = match cgroup::names_a_task(&cgroup) {
        true => Around::Unnamed,
        false => Around::None,
    };
    let mut at = pid;
    for _ in 0..GENERATIONS {
        let stat = stat::read(at)?.ok_or(Error::NoSuchProcess { pid: at })?;
        if at == pid && stat.has_ended() {
            return Err(Error::NoSuchProcess { pid });
        }
        if let Some(folder) = shim::folder_of(at) {
            return Ok(Around::Task(folder));
        }
        if stat.parent <= 1 {
            return Ok(outside);
        }
        at = stat.parent;
    }
    Ok(Around::Unnamed)
}
