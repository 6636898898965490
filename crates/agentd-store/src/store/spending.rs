//! What agents have spent, in detail.

use agentd_core::id::{AgentId, ConversationId};
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;

/// Which requests to add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingQuery {
    /// None for all agents, archived ones included.
    pub agent: Option<AgentId>,
    /// Only requests that ended at this time or later.
    pub since: Option<Timestamp>,
}

/// What one conversation spent with one model on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingRow {
    pub agent: AgentId,
    pub conversation: ConversationId,
    /// None if neither the conversation nor the agent's settings say it, for example after a purge.
    pub model: Option<String>,
    /// See [`Timestamp::day`].
    pub day: i64,
    /// Without [`Spent::busy_ms`].
    pub spent: Spent,
}
