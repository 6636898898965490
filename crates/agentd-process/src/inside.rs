//! Whether a process belongs to a task.
//!
//! What a process says about itself makes it less trusted, and never more: which task it belongs to is read from the
//! record that the task's shim wrote, and only where that names the very ancestor which says that it is that shim.

use crate::cgroup;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::shim;
use crate::stat;
use crate::task;
use std::fs;
use std::path::PathBuf;

/// Generations that are looked at; more than any real tree has.
const GENERATIONS: usize = 256;

/// Whether a process was started by a task, and is under its shim or in its cgroup still. An error where
/// there is no such process.
pub fn is_in_task(pid: u32) -> Result<bool> {
    Ok(task_around(pid)? != Around::Nothing)
}

/// What a process runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Around {
    /// No task.
    Nothing,
    /// The task with this directory.
    Task(PathBuf),
    /// It may be a part of a task: it has left its shim, is in a PID namespace of its own, or an ancestor says of
    /// itself what is not so.
    InDoubt,
}

/// The task that a process was started by; the outermost where there are several, since whatever is inside of a task can
/// pretend to be another one.
pub fn task_around(pid: u32) -> Result<Around> {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut around = match cgroup::names_a_task(&cgroup) || is_deeper_than_us(pid) {
        true => Around::InDoubt,
        false => Around::Nothing,
    };
    let us = std::process::id();
    let mut at = pid;
    for _ in 0..GENERATIONS {
        let stat = stat::read(at)?.ok_or(Error::NoSuchProcess { pid: at })?;
        if at == pid && stat.has_ended() {
            return Err(Error::NoSuchProcess { pid });
        }
        if at == us && at != pid {
            // What we started and is under no shim came to us when its shim was killed.
            return Ok(match around {
                Around::Nothing => Around::InDoubt,
                around => around,
            });
        }
        if let Some(task_dir) = shim::dir_of(at) {
            let identity = Identity {
                pid: at,
                start_ticks: stat.start_ticks,
            };
            around = match task::is_shim_of(&task_dir, identity) {
                true => Around::Task(task_dir),
                false => Around::InDoubt,
            };
        }
        if stat.parent <= 1 {
            return Ok(around);
        }
        at = stat.parent;
    }
    Ok(Around::InDoubt)
}

/// Whether it is in a PID namespace below ours, or that cannot be seen.
fn is_deeper_than_us(pid: u32) -> bool {
    let depth = |pid: &str| -> Option<usize> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?;
        Some(line.split_ascii_whitespace().count())
    };
    match (depth(&pid.to_string()), depth("self")) {
        (Some(its), Some(ours)) => its > ours,
        // A kernel without PID namespaces has no such line for anybody.
        (its, ours) => its.is_some() || ours.is_some(),
    }
}
