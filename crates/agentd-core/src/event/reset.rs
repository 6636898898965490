//! The steps of a reset. Undo, redo and rewind use the same steps.

use crate::id::{ConversationId, OpId, Seq, TaskId};
use serde::{Deserialize, Serialize};

/// From here on new prompts are queued for the new conversation, and the running turn ends.
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
    /// How long the foreground work may take to end.
    pub grace_ms: u64,
    /// A process was running the agent, so one should run it afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_awake: bool,
    /// Who requested it.
    #[serde(default, skip_serializing_if = "ResetSource::is_user")]
    pub source: ResetSource,
}

/// Who requested a reset. The steps are the same for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetSource {
    /// A user of a client.
    #[default]
    User,
    /// The agent itself, with its tool.
    Tool,
    /// There was no turn for the time that the spec sets.
    Idle,
    /// The conversation reached the size that the spec sets.
    ContextSize,
    /// A schedule was due.
    Schedule,
}

impl ResetSource {
    pub const fn is_user(&self) -> bool {
        matches!(self, Self::User)
    }
}

/// The agent requested a fresh conversation at the end of its turn. The reason is in a note of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetScheduled {}

/// Which conversation is current after the reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ResetTo {
    /// A new, empty one.
    Fresh,
    Undo,
    Redo,
    /// A new one that begins at this event of the given conversation, or of the current one if none is given.
    Rewind {
        at: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<ConversationId>,
    },
}

/// A step of the reset is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetStepped {
    pub op: OpId,
    pub step: ResetStep,
}

/// The steps, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetStep {
    /// PreReset hooks run. They may refuse the reset.
    PreReset,
    /// Nothing runs in the foreground, and no process runs the agent.
    Stop,
    /// SessionEnd hooks are notified that the conversation is over. From here on the reset cannot be withdrawn.
    SessionEnd,
    /// The target conversation is current. This event is in the commit that switched to it.
    Switch,
    /// The output of SessionStart hooks opens the new conversation.
    SessionStart,
}

/// The reset was withdrawn. Everything is as before, except for what was already stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetWithdrawn {
    pub op: OpId,
    pub why: ResetRefusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetRefusal {
    /// The foreground work did not end within the grace period.
    StillActive,
    /// A hook refused it.
    Hook,
    /// The target conversation does not exist.
    NoTarget,
    /// The home was restored from a backup that was made during the reset.
    HomeRestored,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetEnded {
    pub op: OpId,
    pub old: ConversationId,
    pub new: ConversationId,
    /// The agent's name at that time, for the receipt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Background tasks that continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TaskId>,
    /// Subagents that continue in the background, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_subagents: Vec<String>,
}

impl ResetEnded {
    /// The end of a reset that leaves nothing running.
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
