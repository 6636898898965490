//! Finds the ends of turns by indexes, so that a rewind to a turn does not read the history.

use super::row::{COLUMNS, EventRow, IdParam, existing_agent_num, sql_seq};
use crate::error::Result;
use crate::store::{TurnQuery, Turns};
use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use rusqlite::{Connection, Rows, params};
use std::ops::RangeInclusive;

const OF: &str =
    "FROM event WHERE agent = ?1 AND conversation = ?2 AND kind = 'turn_ended' AND seq <= ?3";

pub fn ends(journal: &Connection, query: &TurnQuery) -> Result<Vec<Event>> {
    let num = existing_agent_num(journal, query.agent)?;
    let conversation = IdParam(query.conversation.as_bytes());
    let through = sql_seq(query.through);
    let forward = format!("SELECT {COLUMNS} {OF} ORDER BY seq LIMIT ?4 OFFSET ?5");
    let back = format!("SELECT {COLUMNS} {OF} ORDER BY seq DESC LIMIT ?4 OFFSET ?5");
    let (sql, limit, skip) = match query.which {
        Turns::Nth(n) => (forward, 1, n),
        Turns::NthLast(n) => (back, 1, n),
        Turns::Newest(limit) => (back, limit, 0),
        Turns::Id(turn) => {
            let sql = format!(
                "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND turn = ?2 AND kind = 'turn_ended'"
            );
            let mut statement = journal.prepare_cached(&sql)?;
            let rows = statement.query(params![num, IdParam(turn.as_bytes())])?;
            let mut found = read(journal, query.agent, rows)?;
            found.retain(|event| {
                event.conversation == query.conversation && event.seq <= query.through
            });
            return Ok(found);
        }
    };
    let mut statement = journal.prepare_cached(&sql)?;
    let parameters = params![num, conversation, through, limit as i64, skip as i64];
    let mut events = read(journal, query.agent, statement.query(parameters)?)?;
    events.sort_by_key(|event| event.seq);
    Ok(events)
}

fn read(journal: &Connection, agent: AgentId, mut rows: Rows<'_>) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(EventRow::read_of(row, agent)?.decode(journal, agent)?);
    }
    Ok(events)
}

pub fn count(
    journal: &Connection,
    agent: AgentId,
    conversation: ConversationId,
    through: Seq,
) -> Result<usize> {
    let num = existing_agent_num(journal, agent)?;
    let conversation = IdParam(conversation.as_bytes());
    let count: i64 = journal
        .prepare_cached(&format!("SELECT count(*) {OF}"))?
        .query_row(params![num, conversation, sql_seq(through)], |row| {
            row.get(0)
        })?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Ended turns of an agent whose ids lie in a range.
pub fn between(
    journal: &Connection,
    agent: AgentId,
    ids: &RangeInclusive<TurnId>,
    limit: usize,
) -> Result<Vec<TurnId>> {
    let num = existing_agent_num(journal, agent)?;
    let mut statement = journal.prepare_cached(
        "SELECT turn FROM event WHERE agent = ?1 AND turn >= ?2 AND turn <= ?3
             AND kind = 'turn_ended' ORDER BY turn LIMIT ?4",
    )?;
    let (from, to) = (
        IdParam(ids.start().as_bytes()),
        IdParam(ids.end().as_bytes()),
    );
    let found = statement.query_map(params![num, from, to, limit as i64], |row| {
        row.get(0).map(TurnId::from_bytes)
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
