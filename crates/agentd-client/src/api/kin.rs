//! Agents that agents started.

use agentd_core::event::SubagentOutcome;
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Whose subagent an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub id: AgentId,
    /// None where it is not here: a subagent can be imported without it.
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
    pub started_at: Timestamp,
    /// How it ended; none while it works.
    pub outcome: Option<SubagentOutcome>,
}
