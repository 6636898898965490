//! The identity of a process: pid and start time.

use crate::error::{Error, Result};
use crate::stat;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One process, even if its pid is reused later. Valid within one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Identity {
    /// The process that has this pid now. It may be a zombie.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = stat::read(pid)?.ok_or(Error::NoSuchProcess { pid })?;
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// The calling process.
    pub fn current() -> Result<Self> {
        Self::of(std::process::id())
    }

    /// Whether it is running. A zombie is not, and neither is another process with the same pid.
    pub fn is_alive(self) -> Result<bool> {
        Ok(self.look()?.is_some_and(|stat| !stat.has_ended()))
    }

    /// Its `/proc/PID/stat`; `None` if it is gone.
    pub(crate) fn look(self) -> Result<Option<stat::Stat>> {
        let stat = stat::read(self.pid)?;
        Ok(stat.filter(|stat| stat.start_ticks == self.start_ticks))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start_ticks)
    }
}
