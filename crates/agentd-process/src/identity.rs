//! The identity of a process: pid and start time.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One process, even if its pid is reused later. Valid within one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start_ticks)
    }
}
