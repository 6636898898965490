//! Who a process is.

use crate::error::{Error, Result};
use crate::stat;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One process, whatever else gets its pid later. Good for as long as the system is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// When it started, in clock ticks since the system did.
    pub start_ticks: u64,
}

impl Identity {
    /// The process that has this pid now. It may have ended, as long as nobody has reaped it.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = stat::read(pid)?.ok_or(Error::NoSuchProcess { pid })?;
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// The process that asks.
    pub fn current() -> Result<Self> {
        Self::of(std::process::id())
    }

    /// Whether it runs. A zombie does not, nor does whatever has its pid by now.
    pub fn is_alive(self) -> Result<bool> {
        Ok(self.look()?.is_some_and(|stat| !stat.has_ended()))
    }

    /// What the system says about it; none where it is gone.
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
