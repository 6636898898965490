//! Whether a process belongs to a task.

use crate::cgroup;
use crate::error::{Error, Result};
use crate::shim;
use crate::stat;
use std::fs;

/// Generations that are looked at; more than any real tree has.
const GENERATIONS: usize = 256;

/// Whether a process was started by a task, and is under its shim or in its cgroup still. An error where
/// there is no such process.
pub fn is_in_task(pid: u32) -> Result<bool> {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if cgroup::names_a_task(&cgroup) {
        return Ok(true);
    }
    let mut at = pid;
    for _ in 0..GENERATIONS {
        let stat = stat::read(at)?.ok_or(Error::NoSuchProcess { pid: at })?;
        if at == pid && stat.has_ended() {
            return Err(Error::NoSuchProcess { pid });
        }
        if shim::is_shim(at) {
            return Ok(true);
        }
        if stat.parent <= 1 {
            return Ok(false);
        }
        at = stat.parent;
    }
    Ok(true)
}
