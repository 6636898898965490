//! Deletes the words of a conversation for good; its places, its checksums and its cost stay.

use super::load;
use super::readers::Databases;
use super::row::{IdParam, existing_agent_num};
use crate::error::{Error, Result};
use agentd_core::event::Kind;
use agentd_core::id::{AgentId, ConversationId};
use rusqlite::{Connection, params};

/// Why it may not be purged, if so. Nothing is changed.
pub fn check(databases: &Databases, agent: AgentId, conversation: ConversationId) -> Result<()> {
    let (state, _) = load::state(databases, agent)?;
    if state.tree.get(conversation).is_none() {
        return Err(Error::NoSuchConversation {
            agent,
            conversation,
        });
    }
    if state.tree.current() == Some(conversation) {
        return Err(Error::PurgeCurrent { conversation });
    }
    let by = needed_by(databases, agent, conversation)?;
    if by.is_empty() {
        return Ok(());
    }
    Err(Error::PurgeNeeded { conversation, by })
}

/// The agents that have a branch of this conversation whose own words are still there.
fn needed_by(
    databases: &Databases,
    agent: AgentId,
    conversation: ConversationId,
) -> Result<Vec<String>> {
    let mut statement = databases.journal.prepare_cached(
        "SELECT agent.name, agent.id, branch.conversation
         FROM branch JOIN agent ON agent.num = branch.agent
         WHERE branch.from_agent = ?1 AND branch.from_conversation = ?2
         ORDER BY branch.agent, branch.conversation",
    )?;
    let mut rows = statement.query(params![
        IdParam(agent.as_bytes()),
        IdParam(conversation.as_bytes()),
    ])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, id): (String, [u8; 16]) = (row.get(0)?, row.get(1)?);
        let branch = ConversationId::from_bytes(row.get(2)?);
        let (state, _) = load::state(databases, AgentId::from_bytes(id))?;
        if state.tree.get(branch).is_some_and(|branch| !branch.purged) {
            names.push(format!("`{name}` (conversation {branch})"));
        }
    }
    Ok(names)
}

/// What was deleted.
pub struct Deleted {
    pub events: u64,
    pub blobs: u64,
}

/// Runs on the writer's thread, inside a transaction of its own.
pub fn delete(
    databases: &Databases,
    agent: AgentId,
    conversation: ConversationId,
) -> Result<Deleted> {
    check(databases, agent, conversation)?;
    let journal = &databases.journal;
    let num = existing_agent_num(journal, agent)?;
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_content());
    let kinds: Vec<String> = kinds.map(|kind| format!("'{}'", kind.name())).collect();
    let which = format!(
        "agent = ?1 AND seq > 0 AND conversation = ?2 AND body IS NOT NULL AND kind IN ({})",
        kinds.join(", ")
    );
    let parameters = params![num, IdParam(conversation.as_bytes())];
    let positions = format!(
        "SELECT position FROM event WHERE {which}
         UNION ALL SELECT position FROM quarantine WHERE agent = ?1 AND conversation = ?2"
    );
    let blobs = release_blobs(journal, &positions, parameters)?;
    let events = journal.execute(
        &format!("UPDATE event SET body = NULL, apart = NULL, salt = NULL WHERE {which}"),
        parameters,
    )?;
    journal.execute(
        "DELETE FROM quarantine WHERE agent = ?1 AND conversation = ?2",
        parameters,
    )?;
    Ok(Deleted {
        events: events as u64,
        blobs,
    })
}

/// Lets go of the blobs of some events, and deletes those that nothing else refers to.
fn release_blobs(
    journal: &Connection,
    positions: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<u64> {
    let mut statement = journal.prepare(&format!(
        "SELECT DISTINCT blob FROM blob_use WHERE position IN ({positions})"
    ))?;
    let used: Vec<i64> = statement
        .query_map(parameters, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    journal.execute(
        &format!("DELETE FROM blob_use WHERE position IN ({positions})"),
        parameters,
    )?;
    let mut deleted = 0;
    for blob in used {
        deleted += journal
            .prepare_cached(
                "DELETE FROM blob WHERE num = ?1
                 AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = ?1)",
            )?
            .execute([blob])?;
    }
    Ok(deleted as u64)
}
