//! The section of the user's file about the daemon.

use serde::{Deserialize, Serialize};

/// `[daemon]`: each key with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonSettings {
    /// How long an agent's process continues without a daemon, in milliseconds. Default: 3600000, an hour.
    pub orphan_ms: u64,
    /// How long a reset or a stop waits for all SessionEnd hooks together, in milliseconds. The hooks then continue
    /// until their own timeouts. Default: 1500.
    pub session_end_wait_ms: u64,
    /// The level of the daemon's log. Default: `info`.
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
