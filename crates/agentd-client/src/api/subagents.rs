//! Subagents, and references to agents.

use agentd_core::event::SubagentOutcome;
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A reference to an agent: `agent`, `parent`, `displaced`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    pub id: AgentId,
    /// None if the agent does not exist here: a subagent can be imported without its parent.
    pub name: Option<String>,
}

/// A subagent, from its parent's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub id: AgentId,
    pub name: String,
    pub kind: Option<String>,
    /// The turn does not wait for it.
    pub background: bool,
    #[serde(with = "super::time")]
    pub started_at: Timestamp,
    /// How it ended; none while it is running.
    pub outcome: Option<SubagentOutcome>,
}
