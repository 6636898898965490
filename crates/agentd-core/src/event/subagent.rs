//! Subagents: agents that another agent started, as recorded in both journals.

use crate::id::{AgentId, CallId, PromptId};
use crate::spec::Budget;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};

/// In the parent's journal, before the subagent exists: the subagent is to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentStarted {
    pub agent: AgentId,
    pub name: String,
    pub call: CallId,
    /// Which of the kinds that the parent may start; `None` is the parent's own kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The parent's turn does not wait for it.
    pub background: bool,
    /// What it and its descendants may use, reserved from what the parent has left.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub lease: Budget,
}

/// In the parent's journal, exactly once: how the subagent ended. The unused rest of its lease returns to the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentEnded {
    pub agent: AgentId,
    pub outcome: SubagentOutcome,
    /// By the subagent and all its descendants.
    pub spent: Spent,
    /// The prompt of the same append that delivers its answer. A foreground subagent's answer is the result of its
    /// call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
}

/// How a subagent ended, as reported to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentOutcome {
    Completed,
    Interrupted,
    Failed,
    Limited,
    Lost,
    /// It was reset and no longer has its task in its window.
    Reset,
    /// It was removed.
    Deleted,
}

/// In the subagent's own journal, with its first prompt: its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentOf {
    pub parent: AgentId,
    pub call: CallId,
    /// The prompt that the parent waits for.
    pub prompt: PromptId,
    pub background: bool,
}

/// In the subagent's own journal: its end was reported to the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentTold {}
