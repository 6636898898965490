//! What the rules ask about other journals, answered from the tables.

use super::fold;
use super::readers::Databases;
use super::row::IdParam;
use crate::damage::Damage;
use crate::error::Result;
use crate::rules::{Branch, Journals};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::state::AgentState;
use rusqlite::{OptionalExtension as _, params};

impl Journals for Databases {
    fn state(&self, agent: AgentId) -> Result<(AgentState, Option<Damage>)> {
        fold::state(self, agent)
    }

    fn is_listed(&self, agent: AgentId) -> Result<bool> {
        let listed: Option<i64> = self
            .journal
            .query_row(
                "SELECT listed FROM agent WHERE id = ?1",
                [IdParam(agent.as_bytes())],
                |row| row.get(0),
            )
            .optional()?;
        Ok(listed.is_some_and(|listed| listed != 0))
    }

    fn branches_of(&self, agent: AgentId, conversation: ConversationId) -> Result<Vec<Branch>> {
        let mut statement = self.journal.prepare_cached(
            "SELECT agent.name, agent.id, branch.conversation
             FROM branch JOIN agent ON agent.num = branch.agent
             WHERE branch.from_agent = ?1 AND branch.from_conversation = ?2
             ORDER BY branch.agent, branch.conversation",
        )?;
        let parameters = params![IdParam(agent.as_bytes()), IdParam(conversation.as_bytes()),];
        let branches = statement.query_map(parameters, |row| {
            Ok(Branch {
                name: row.get(0)?,
                agent: AgentId::from_bytes(row.get(1)?),
                conversation: ConversationId::from_bytes(row.get(2)?),
            })
        })?;
        Ok(branches.collect::<rusqlite::Result<_>>()?)
    }
}
