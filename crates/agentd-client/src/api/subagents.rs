//! Agents that agents started.

use agentd_core::event::SubagentOutcome;
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An agent, wherever one is spoken of: `agent`, `parent`, `displaced`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    pub id: AgentId,
    /// None where it is not here: a subagent can be imported without its parent.
    pub name: Option<String>,
}

/// A subagent, as its parent has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub id: AgentId,
    pub name: String,
    pub kind: Option<String>,
    /// The turn does not wait for it.
    pub background: bool,
    #[serde(with = "super::time")]
    pub started_at: Timestamp,
    /// How it ended; none while it works.
    pub outcome: Option<SubagentOutcome>,
}
