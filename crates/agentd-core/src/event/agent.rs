//! What happens to an agent as a whole.

use crate::id::{AgentId, ConversationId, Incarnation, Seq};
use crate::spec::AgentSpec;
use serde::{Deserialize, Serialize};

/// How long an agent lives.
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

/// The agent's configuration, whole. It belongs to the agent, not to a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpecSet {
    pub spec: Box<AgentSpec>,
}

/// The old name stays as an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRenamed {
    pub name: String,
}

/// The journal up to here is another agent's, imported under a new id because that agent was there. The
/// chain is the one that the other agent's journal had behind its event `seq`.
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

/// It is to run from now on, whenever there is something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStarted {}

/// It is not to run from now on, whatever comes; the turn under way ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStopped {}

/// Its process cannot be kept alive. It is not tried again before somebody starts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFailed {
    pub cause: FailCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCause {
    /// It ended again and again, each time soon.
    CrashLoop,
    /// It says that it cannot do its work: a directory or a provider is not there.
    CannotRun,
    /// It ended, and the agent's `restart` says to leave it at that.
    NotRestarted,
}

/// What comes before was written elsewhere. Nothing of the agent runs until the user releases it: no process, no hook,
/// no prompt of its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHeld {
    pub reason: HoldReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// It was read from an export file.
    Imported,
    /// It is a fork of an agent that is held, and has its settings.
    Forked,
}

/// The user has seen what a held agent contains. What was not kept is dropped by the events of the same append.
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
    /// Prompts that wait, or were set aside.
    Queue,
    /// Rules that allow calls.
    Permissions,
    /// A sandbox that is wider than the default, and paths outside the working directory.
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

/// A new process has taken the agent over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationBegan {
    pub incarnation: Incarnation,
    pub after: After,
    /// Its tools run without a sandbox, whoever said so: the agent's settings, or the daemon's environment.
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

/// The process has ended by itself, with nothing in hand: whatever takes over does so after no crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationEnded {
    pub incarnation: Incarnation,
}

/// Why a new process was needed. Only a crash counts towards giving a turn up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    Start,
    Restart,
    Crash,
}

/// The words of a conversation were deleted for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    pub conversation: ConversationId,
    pub events: u64,
}

/// A damaged tail was set aside; the journal goes on from the last good event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    pub from: Seq,
    pub through: Seq,
}
