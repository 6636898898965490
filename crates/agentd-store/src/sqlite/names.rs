//! Names: one namespace for all agents that are not archived.

use super::entry::Entry;
use super::row::IdParam;
use crate::error::Result;
use crate::rules;
use agentd_core::event::Body;
use agentd_core::id::AgentId;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::ops::RangeInclusive;

/// An error if another agent has the name, except as an alias. True if names change.
pub fn check_names<'a>(
    journal: &Connection,
    entry: &Entry,
    events: impl Iterator<Item = &'a Body>,
) -> Result<bool> {
    let is_taken = |name: &str| is_anothers(journal, entry, name);
    rules::names::check_names(&entry.state, events, is_taken)
}

/// Whether another agent that is not archived has this name, not only as an alias.
fn is_anothers(journal: &Connection, entry: &Entry, name: &str) -> Result<bool> {
    let holder: Option<i64> = journal
        .prepare_cached(
            "SELECT agent.num FROM name JOIN agent ON agent.num = name.agent
             WHERE name.name = ?1 AND agent.name = ?1",
        )?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(holder.is_some_and(|holder| holder != entry.num))
}

/// Writes the names of an agent. An archived agent has none, so that others can use them.
pub fn update_names(journal: &Connection, entry: &Entry) -> Result<()> {
    journal.execute("DELETE FROM name WHERE agent = ?1", [entry.num])?;
    if entry.state.archived {
        return Ok(());
    }
    // Takes the name from an agent that has it as an alias; `check_names` has refused all other conflicts.
    journal.execute(
        "INSERT INTO name (name, agent) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET agent = excluded.agent",
        params![entry.state.name, entry.num],
    )?;
    for name in &entry.state.aliases {
        // An alias that another agent has taken since then stays with that agent.
        journal.execute(
            "INSERT OR IGNORE INTO name (name, agent) VALUES (?1, ?2)",
            params![name, entry.num],
        )?;
    }
    Ok(())
}

pub fn find(journal: &Connection, name: &str) -> Result<Option<AgentId>> {
    let id: Option<[u8; 16]> = journal
        .prepare_cached(
            "SELECT agent.id FROM name JOIN agent ON agent.num = name.agent WHERE name.name = ?1",
        )?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(id.map(AgentId::from_bytes))
}

/// Agents whose ids lie in a range, archived ones included.
pub fn between(
    journal: &Connection,
    ids: &RangeInclusive<AgentId>,
    limit: usize,
) -> Result<Vec<AgentId>> {
    // The plus keeps SQLite from using an index on `listed` and then sorting.
    let mut statement = journal.prepare_cached(
        "SELECT id FROM agent WHERE id >= ?1 AND id <= ?2 AND +listed IN (1, 2)
         ORDER BY id LIMIT ?3",
    )?;
    let (from, to) = (
        IdParam(ids.start().as_bytes()),
        IdParam(ids.end().as_bytes()),
    );
    let found = statement.query_map(params![from, to, limit as i64], |row| {
        row.get(0).map(AgentId::from_bytes)
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
