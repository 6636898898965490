//! The records that a shim writes about its task.

use crate::identity::Identity;
use agentd_sandbox::Refused;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file `running`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    pub shim: Identity,
    /// The program; `None` before it is started.
    pub leader: Option<Identity>,
    pub boot: String,
    pub cgroup: Option<PathBuf>,
}

/// The file `exit`: how a task ended. Its existence is the only proof that the task ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; `None` if a signal ended the program, or if it was never started.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// It was ended because of its time limit.
    pub timed_out: bool,
    /// It was ended on request.
    pub stopped: bool,
    /// The size of `output`.
    pub output_bytes: u64,
    /// The bytes of stdout and stderr that were not kept.
    pub dropped_bytes: u64,
    pub duration_ms: u64,
    /// Why the program could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it may not do to a repository, and did.
    #[serde(default, skip_serializing_if = "Refused::is_empty")]
    pub refused: Refused,
    /// The shim ended what was left when the program had ended ([`Order::foreground`](super::Order)). False in records of
    /// earlier versions.
    #[serde(default)]
    pub foreground: bool,
    /// New entries of the agent's own home: see [`agentd_sandbox::OwnHome`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_own_home: Vec<String>,
}
