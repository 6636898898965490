//! What the rules ask a backend. The backend answers all questions of one check inside one transaction.

use crate::damage::Damage;
use crate::error::Result;
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::state::AgentState;

pub trait Journals {
    /// The agent's state, and where its journal is damaged.
    fn state(&self, agent: AgentId) -> Result<(AgentState, Option<Damage>)>;

    /// Whether the agent itself is stored, not only a prefix of its journal as an ancestor of another agent.
    fn is_listed(&self, agent: AgentId) -> Result<bool>;

    /// The conversations, of any agent, that begin in this one.
    fn branches_of(&self, agent: AgentId, conversation: ConversationId) -> Result<Vec<Branch>>;
}

/// A conversation that begins in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    pub agent: AgentId,
    /// The agent's name.
    pub name: String,
    pub conversation: ConversationId,
}
