//! The daemon itself.

use agentd_core::spec::Sandbox;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/daemon`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub version: String,
    pub pid: u32,
    pub home: String,
    #[serde(with = "super::time")]
    pub started_at: Timestamp,
    pub agents: u64,
    /// Processes that run agents.
    pub awake: u64,
    /// Resident memory in bytes.
    pub memory: u64,
    /// The id of the state directory. An adopted copy has another id than its original.
    pub home_id: String,
    /// Why nothing can be changed: the state directory seems to be a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// The sandbox of agents whose settings name none, if the daemon's environment determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
}
