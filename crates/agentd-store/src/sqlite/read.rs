//! Pages of events.

use super::row::{COLUMNS, IdParam, StoredEvent, existing_agent_num, sql_seq};
use crate::error::Result;
use crate::store::*;
use agentd_core::id::AgentId;
use rusqlite::{Connection, params};

/// Events on one page at the most.
pub const MAX_PAGE: usize = 1000;

pub fn page(journal: &Connection, query: &ReadQuery) -> Result<Page> {
    let num = existing_agent_num(journal, query.agent)?;
    let limit = query.limit.clamp(1, MAX_PAGE);
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2
             AND (?3 IS NULL OR conversation = ?3) AND (?4 IS NULL OR turn = ?4)
         ORDER BY seq LIMIT ?5"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        num,
        sql_seq(query.after),
        query.conversation.as_ref().map(|id| IdParam(id.as_bytes())),
        query.turn.as_ref().map(|id| IdParam(id.as_bytes())),
        (limit + 1) as i64,
    ])?;
    let mut events = Vec::new();
    let mut next = None;
    while let Some(row) = rows.next()? {
        if events.len() == limit {
            next = events
                .last()
                .map(|event: &agentd_core::event::Event| event.seq);
            break;
        }
        events.push(StoredEvent::read(row)?.decode(journal, query.agent)?);
    }
    Ok(Page { events, next })
}

pub fn global_page(journal: &Connection, after: Cursor, limit: usize) -> Result<GlobalPage> {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut events = Vec::new();
    let mut next = None;
    each_after(journal, after, (limit + 1) as i64, |agent, row| {
        let cursor = Cursor(row.position.unsigned_abs());
        if events.len() == limit {
            next = events.last().map(|(cursor, _)| *cursor);
        } else {
            events.push((cursor, row.decode(journal, agent)?));
        }
        Ok(())
    })?;
    Ok(GlobalPage { events, next })
}

/// Calls `each` with up to `limit` events behind `after`, in the order they were committed.
pub fn each_after(
    journal: &Connection,
    after: Cursor,
    limit: i64,
    mut each: impl FnMut(AgentId, StoredEvent) -> Result<()>,
) -> Result<()> {
    // The agent's id stands behind the columns that a stored event is read from.
    let columns = COLUMNS.replace("position", "event.position");
    let sql = format!(
        "SELECT {columns}, agent.id FROM event JOIN agent ON agent.num = event.agent
         WHERE event.position > ?1 ORDER BY event.position LIMIT ?2"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after.0 as i64, limit])?;
    while let Some(row) = rows.next()? {
        let agent = AgentId::from_bytes(row.get(12)?);
        each(agent, StoredEvent::read(row)?)?;
    }
    Ok(())
}
