//! A reset, step by step. Undo, redo and rewind go the same way.

use crate::id::{ConversationId, OpId, Seq, TaskId};
use serde::{Deserialize, Serialize};

/// From here on new prompts wait for the new conversation, and the turn under way ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetBegan {
    pub op: OpId,
    pub to: ResetTo,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill_background: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_queue: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_log: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_hooks: bool,
    /// How long what runs in the foreground may take to end.
    pub grace_ms: u64,
    /// A process ran the agent: one is to run it afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_awake: bool,
    /// Who wanted it.
    #[serde(default, skip_serializing_if = "ResetSource::is_user")]
    pub source: ResetSource,
}

/// Who wanted a reset. What happens is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetSource {
    /// Somebody at a client.
    #[default]
    User,
    /// The agent itself, with a tool.
    Tool,
    /// Nothing was said for as long as the spec says.
    Idle,
    /// The conversation got as large as the spec lets it.
    ContextSize,
}

impl ResetSource {
    pub const fn is_user(&self) -> bool {
        matches!(self, Self::User)
    }
}

/// The agent itself wants a fresh conversation, at the end of its turn. Why is in a note of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetScheduled {}

/// Which conversation is current afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ResetTo {
    /// A new, empty one.
    Fresh,
    Undo,
    Redo,
    /// A new one, from this event of that conversation; of the current one where none is named.
    Rewind {
        at: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<ConversationId>,
    },
}

/// That step is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetStepped {
    pub op: OpId,
    pub step: ResetStep,
}

/// The steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetStep {
    /// Hooks may refuse.
    PreReset,
    /// Nothing runs in the foreground, and no process has the agent.
    Stop,
    /// Hooks hear that the conversation is over. From here on there is no way back.
    SessionEnd,
    /// The other conversation is current; this is in the commit that made it so.
    Switch,
    /// What hooks have to say opens the new conversation.
    SessionStart,
}

/// Everything is as it was before it began, but for what was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetWithdrawn {
    pub op: OpId,
    pub why: ResetRefusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetRefusal {
    /// What runs in the foreground did not end within the grace.
    StillActive,
    /// A hook said no.
    Hook,
    /// There is no conversation to go to.
    NoTarget,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetEnded {
    pub op: OpId,
    pub old: ConversationId,
    pub new: ConversationId,
    /// What the agent is called at that time: the receipt names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Background tasks that go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TaskId>,
    /// Subagents that go on in the background, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_subagents: Vec<String>,
}

impl ResetEnded {
    /// One that leaves nothing running.
    pub const fn new(op: OpId, old: ConversationId, new: ConversationId) -> Self {
        Self {
            op,
            old,
            new,
            name: String::new(),
            kept: Vec::new(),
            kept_subagents: Vec::new(),
        }
    }
}
