//! Whether a process belongs to a task.
//!
//! A process can only make itself less trusted. Its task is read from the record that the task's shim wrote, and the
//! record counts only if it names exactly the ancestor that appears to be the shim.

use crate::cgroup;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::shim_protocol::dir_of;
use crate::stat;
use crate::task;
use agentd_files::own;
use std::io;
use std::path::PathBuf;

/// How many generations are checked; more than any real tree has.
const GENERATIONS: usize = 256;

/// Whether a process was started by a task, and is still under its shim or in its cgroup. An error if there is no such
/// process.
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
    /// It may be part of a task: it has left its shim, is in its own PID namespace, or an ancestor falsely claims to be
    /// a shim.
    InDoubt,
}

/// The task that started a process; the outermost one if there are several, because a process inside a task can pretend
/// to be the shim of another one.
pub fn task_around(pid: u32) -> Result<Around> {
    let mut around = match may_be_in_a_task_cgroup(pid) || is_deeper_than_us(pid) {
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
            // A descendant of ours without a shim above it may be left of a task whose shim was killed.
            return Ok(match around {
                Around::Nothing => Around::InDoubt,
                around => around,
            });
        }
        if let Some(task_dir) = dir_of(at) {
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

/// Whether its cgroup is that of a task, or whether that cannot be determined.
fn may_be_in_a_task_cgroup(pid: u32) -> bool {
    match own::read_to_string(format!("/proc/{pid}/cgroup")) {
        Ok(cgroup) => cgroup::names_a_task(&cgroup),
        // A kernel without cgroups has no such file.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether it is in a PID namespace below ours, or whether that cannot be determined.
fn is_deeper_than_us(pid: u32) -> bool {
    let depth = |pid: &str| -> io::Result<Option<usize>> {
        let status = own::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        Ok(line.map(|line| line.split_ascii_whitespace().count()))
    };
    match (depth(&pid.to_string()), depth("self")) {
        (Ok(Some(its)), Ok(Some(ours))) => its > ours,
        // A kernel without PID namespaces has no such line for any process.
        (Ok(None), Ok(None)) => false,
        _ => true,
    }
}
