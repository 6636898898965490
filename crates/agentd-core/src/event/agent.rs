//! Events about an agent as a whole.

use super::files::{FilesPurged, is_zero};
use crate::id::{AgentId, ConversationId, Incarnation, Seq};
use crate::spec::AgentSpec;
use serde::{Deserialize, Serialize};

/// How long an agent exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Until it is removed.
    Persistent,
    /// For one prompt.
    Oneshot,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCreated {
    pub name: String,
    pub mode: Mode,
}

/// The agent's complete configuration. It belongs to the agent, not to a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpecSet {
    #[serde(deserialize_with = "crate::spec::read_stored")]
    pub spec: Box<AgentSpec>,
}

/// The old name stays as an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRenamed {
    pub name: String,
}

/// The journal up to here was imported from another agent under a new id, because the original id already existed.
/// `chain` is the checksum chain of the other agent's journal after its event `seq`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentImported {
    pub agent: AgentId,
    pub seq: Seq,
    pub chain: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentArchived {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRestored {}

/// The agent should run from now on whenever there is work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStarted {}

/// The agent should not run from now on, even if there is work. The running turn ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStopped {}

/// The agent's process cannot be kept running. It is not started again until a user starts the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFailed {
    pub cause: FailCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCause {
    /// It exited repeatedly, each time soon after its start.
    CrashLoop,
    /// It reports that it cannot work: a directory or a provider is missing.
    CannotRun,
    /// It exited, and the agent's `restart` setting says not to restart it.
    NotRestarted,
}

/// All events before this one come from another installation. Nothing of the agent runs until the user releases it:
/// no process, no hook, no queued prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHeld {
    pub reason: HoldReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// It was read from an export file.
    Imported,
    /// It is a fork of a held agent and has its settings.
    Forked,
}

/// The user has reviewed the contents of a held agent. The events of the same append drop what was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReleased {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<HeldPart>,
}

/// A part of a held agent that is dropped when it is released, unless the user keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldPart {
    /// `hooks` of its settings.
    Hooks,
    /// Prompts that are queued or set aside.
    Queue,
    /// Rules that allow calls.
    Permissions,
    /// A sandbox that is wider than the default, or paths outside the working directory.
    Sandbox,
    /// `env` of its settings.
    Env,
    /// MCP servers, and the program of an `acp` or `command` runtime.
    Programs,
}

impl HeldPart {
    pub const ALL: [Self; 6] = [
        Self::Hooks,
        Self::Queue,
        Self::Permissions,
        Self::Sandbox,
        Self::Env,
        Self::Programs,
    ];
}

/// A new process has taken over the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationBegan {
    pub incarnation: Incarnation,
    pub after: After,
    /// Its tools run without a sandbox, because of the agent's settings or of the daemon's environment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_access: bool,
}

impl IncarnationBegan {
    pub const fn new(incarnation: Incarnation, after: After) -> Self {
        Self {
            incarnation,
            after,
            full_access: false,
        }
    }
}

/// The process exited by itself with no work in progress: the next process does not start after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationEnded {
    pub incarnation: Incarnation,
}

/// Why a new process was needed. Only crashes count towards giving up a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    Start,
    Restart,
    Crash,
}

/// The content of a conversation was deleted permanently, or only old contents of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    pub conversation: ConversationId,
    pub events: u64,
    /// How many bytes of files were deleted with the conversation. They count no longer towards
    /// `limits.file_history_bytes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_bytes: u64,
    /// Set if only the oldest `file_kept` events lost their bodies, in all conversations. The conversation is not purged
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesPurged>,
}

impl Purged {
    /// The end of a conversation's content, in which no file was kept.
    pub const fn conversation(conversation: ConversationId, events: u64) -> Self {
        Self {
            conversation,
            events,
            kept_bytes: 0,
            files: None,
        }
    }
}

/// A damaged tail was moved to quarantine. The journal continues after the last good event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    pub from: Seq,
    pub through: Seq,
}
