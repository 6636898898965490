//! Subagents: an agent that another one started, as either of the two has it on record.

use crate::id::{AgentId, CallId, PromptId};
use crate::spec::Budget;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};

/// In the parent's journal, before there is anything of the subagent: it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentStarted {
    pub agent: AgentId,
    pub name: String,
    pub call: CallId,
    /// Which of the kinds that the parent may start; none is the parent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The turn does not wait for it.
    pub background: bool,
    /// What it and all below it may use; set aside from what the parent has left.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub lease: Budget,
}

/// In the parent's journal, once: how it ended. What is left of its lease is the parent's again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentEnded {
    pub agent: AgentId,
    pub outcome: SubagentOutcome,
    /// By it and by all below it.
    pub spent: Spent,
    /// The prompt of the same append that brings its answer; one in the foreground has its call's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
}

/// How a subagent ended, as its parent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentOutcome {
    Completed,
    Interrupted,
    Failed,
    Limited,
    Lost,
    /// It was reset, and has forgotten what it was to do.
    Reset,
    /// It was removed.
    Deleted,
}

/// In the subagent's own journal, with its first prompt: whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentOf {
    pub parent: AgentId,
    pub call: CallId,
    /// The prompt that the parent waits for.
    pub prompt: PromptId,
    pub background: bool,
}

/// In the subagent's own journal: its parent knows how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentTold {}
