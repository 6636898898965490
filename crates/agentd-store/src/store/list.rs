//! The list of agents: queries and rows.

use super::AgentCursor;
use agentd_core::event::Mode;
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentQuery {
    pub mode: Option<Mode>,
    pub phase: Option<Phase>,
    /// Archived agents, instead of those that are not archived.
    pub archived: bool,
    pub name_prefix: Option<String>,
    pub sort: AgentSort,
    pub limit: usize,
    /// From [`AgentPage::next`].
    pub after: Option<AgentCursor>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentSort {
    /// The most recently updated agent first.
    #[default]
    Recent,
    Name,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AgentPage {
    pub agents: Vec<AgentRow>,
    /// The number of all agents that match, so that a truncated list does not look like data loss.
    pub total: u64,
    pub next: Option<AgentCursor>,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRow {
    pub id: AgentId,
    pub name: String,
    pub mode: Mode,
    pub phase: Phase,
    pub archived: bool,
    pub created_at: Timestamp,
    /// Accurate to one second.
    pub updated_at: Timestamp,
    pub generation: u64,
    pub conversations: u64,
    pub spent: Spent,
    /// The agent that started it, if it is a subagent.
    pub parent: Option<AgentId>,
}
