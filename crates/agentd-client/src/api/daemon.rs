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
    /// How many of them are of another build than the daemon's. Each is replaced when its turn has ended.
    #[serde(default)]
    pub outdated: u64,
    /// Which build of the program the daemon runs. Opaque: another process that runs the same file has the same text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Turns that are running, without those that wait for the user.
    #[serde(default)]
    pub turns: u64,
    /// Turns that wait to begin: the limits of the home are reached.
    #[serde(default)]
    pub waiting: u64,
    /// No new turn begins.
    #[serde(default)]
    pub draining: bool,
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
    /// Why agents run without scopes of the service manager although they should have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_scopes: Option<String>,
    /// The webhooks of notifications whose next message could not be delivered, by name.
    #[serde(default)]
    pub failing_webhooks: Vec<FailingWebhook>,
    /// The settings that were changed and read again, and take effect when the daemon starts again.
    #[serde(default)]
    pub needs_restart: Vec<String>,
    /// The scheduled backup that could not be made. None if the last one was made, or none is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_backup: Option<FailingBackup>,
}

/// A backup of `[backup]` that could not be made. The daemon tries again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingBackup {
    /// `directory` in config.toml.
    pub directory: String,
    /// When the first of the attempts failed, since the daemon started.
    #[serde(with = "super::time")]
    pub since: Timestamp,
    /// Failed attempts, one after the other.
    pub attempts: u32,
    /// Why the last of them failed.
    pub error: String,
}

/// A webhook of `[notify]` whose next message could not be delivered. The daemon tries again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingWebhook {
    /// Its name in config.toml.
    pub name: String,
    /// Failed attempts, one after the other.
    pub attempts: u32,
    /// Why the last of them failed. Never contains the address.
    pub error: String,
}

/// `POST /v1/daemon/drain`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Turns may begin again.
    #[serde(default)]
    pub off: bool,
}
