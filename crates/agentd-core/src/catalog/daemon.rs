//! The part of the user's file that is about the daemon.

use serde::{Deserialize, Serialize};

/// `[daemon]`, each key with what holds where the file says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonSettings {
    /// How long an agent's process goes on without a daemon, in milliseconds. Default: 3600000, an hour.
    pub orphan_ms: u64,
    /// How long a reset or a stop waits for all SessionEnd hooks together, in milliseconds; they run on
    /// to their own limit. Default: 1500.
    pub session_end_wait_ms: u64,
    /// How much the daemon's log says. Default: `info`.
    pub log: LogLevel,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            orphan_ms: 3_600_000,
            session_end_wait_ms: 1_500,
            log: LogLevel::Info,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}
