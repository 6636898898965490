//! The section of the user's file about the daemon.

use crate::spec::dollars;
use crate::usage::MicroUsd;
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
    /// The most turns at the same time; further turns wait. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Megabytes that must be free on the disk of the state directory; below that, new turns wait. Default: 100, or 2 %
    /// of a small disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_free_mb: Option<u64>,
    pub day: HomeDay,
    /// Who keeps the processes of agents together. Default: `auto`.
    pub supervisor: SupervisorChoice,
}

/// `[daemon.day]`: what all agents together may use on a day (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HomeDay {
    /// New turns wait for the next day once this much was spent. Default: no limit.
    #[serde(with = "dollars", skip_serializing_if = "Option::is_none")]
    pub usd: Option<MicroUsd>,
}

impl DaemonSettings {
    /// The key that has a value that cannot be used, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.max_turns == Some(0) {
            let reason = "no turn would ever begin: it must be 1 or more; to let no turn begin for a while, \
                          use `agentd daemon drain`";
            return Err(("max_turns", reason.to_owned()));
        }
        Ok(())
    }
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            orphan_ms: 3_600_000,
            session_end_wait_ms: 1_500,
            log: LogLevel::Info,
            max_turns: None,
            min_free_mb: None,
            day: HomeDay::default(),
            supervisor: SupervisorChoice::default(),
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

/// Who keeps the processes of each agent together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorChoice {
    /// `systemd` if the user's service manager started the daemon, otherwise `native`.
    #[default]
    Auto,
    /// The daemon alone.
    Native,
    /// The user's service manager: each agent has a scope of its own.
    Systemd,
}

impl SupervisorChoice {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Systemd => "systemd",
        }
    }
}
