//! Names: one space for all living agents.

use super::writer::Entry;
use crate::error::{Error, Result};
use agentd_core::event::Body;
use agentd_core::id::AgentId;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Refuses names that others have. True where the names change.
pub fn check_names<'a>(
    journal: &Connection,
    entry: &Entry,
    events: impl Iterator<Item = &'a Body>,
) -> Result<bool> {
    let mut changes = false;
    for body in events {
        let name = match body {
            Body::AgentCreated(body) => &body.name,
            Body::AgentRenamed(body) => &body.name,
            Body::AgentRestored(_) => &entry.state.name,
            Body::AgentArchived(_) => {
                changes = true;
                continue;
            }
            _ => continue,
        };
        changes = true;
        let holder: Option<i64> = journal
            .prepare_cached("SELECT agent FROM name WHERE name = ?1")?
            .query_row([name], |row| row.get(0))
            .optional()?;
        if holder.is_some_and(|holder| holder != entry.num) {
            return Err(Error::NameTaken { name: name.clone() });
        }
    }
    Ok(changes)
}

/// Names are one space for all living agents; an archived one gives its names back.
pub fn update_names(journal: &Connection, entry: &Entry) -> Result<()> {
    journal.execute("DELETE FROM name WHERE agent = ?1", [entry.num])?;
    if entry.state.archived {
        return Ok(());
    }
    let aliases = entry.state.aliases.iter();
    for name in std::iter::once(&entry.state.name).chain(aliases) {
        // An alias that somebody else has taken meanwhile is theirs.
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
