//! Pages of events.

use super::row::{BEHIND, COLUMNS, IdParam, StoredEvent, existing_agent_num, sql_seq};
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
        events.push(StoredEvent::read_of(row, query.agent)?.decode(journal, query.agent)?);
    }
    Ok(Page { events, next })
}

/// By an index of its own: a rewind to a turn does not read the history.
pub fn turn_ends(journal: &Connection, query: &TurnQuery) -> Result<TurnEnds> {
    const OF: &str = "FROM event WHERE agent = ?1 AND conversation = ?2 AND kind = 'turn_ended'
                      AND seq <= ?3";
    let num = existing_agent_num(journal, query.agent)?;
    let conversation = IdParam(query.conversation.as_bytes());
    let through = sql_seq(query.through);
    let total: i64 = journal
        .prepare_cached(&format!("SELECT count(*) {OF}"))?
        .query_row(params![num, conversation, through], |row| row.get(0))?;
    let total = usize::try_from(total).unwrap_or_default();
    let (skip, limit, turn) = match query.which {
        Turns::Newest(limit) => (total.saturating_sub(limit), limit, None),
        Turns::Nth(n) => (n, 1, None),
        Turns::Id(turn) => (0, 1, Some(turn)),
    };
    let is_it = turn.map_or("", |_| "AND turn = ?6");
    let sql = format!("SELECT {COLUMNS} {OF} {is_it} ORDER BY seq LIMIT ?4 OFFSET ?5");
    let mut statement = journal.prepare_cached(&sql)?;
    let (limit, skip) = (limit as i64, skip as i64);
    let mut rows = match &turn {
        Some(turn) => {
            let turn = IdParam(turn.as_bytes());
            statement.query(params![num, conversation, through, limit, skip, turn])?
        }
        None => statement.query(params![num, conversation, through, limit, skip])?,
    };
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = StoredEvent::read_of(row, query.agent)?;
        events.push(stored.decode(journal, query.agent)?);
    }
    Ok(TurnEnds { events, total })
}

pub fn global_page(journal: &Connection, after: Cursor, limit: usize) -> Result<GlobalPage> {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut events = Vec::new();
    let mut next = None;
    let sql = after_sql();
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![position(after), i64::MAX, (limit + 1) as i64])?;
    while let Some(row) = rows.next()? {
        let agent = AgentId::from_bytes(row.get(BEHIND)?);
        let stored = StoredEvent::read_of(row, agent)?;
        let cursor = Cursor(stored.position.unsigned_abs());
        if events.len() == limit {
            next = events.last().map(|(cursor, _)| *cursor);
        } else {
            events.push((cursor, stored.decode(journal, agent)?));
        }
    }
    Ok(GlobalPage { events, next })
}

/// A stretch of the order of all commits.
pub struct Stretch {
    /// What of it can be read.
    pub events: Vec<(AgentId, StoredEvent)>,
    /// Where it ends; none where there was nothing.
    pub last: Option<Cursor>,
    /// It was cut, and there may be more behind it.
    pub is_cut: bool,
}

/// Up to `limit` events behind `after` and up to `through`.
pub fn stretch(
    journal: &Connection,
    after: Cursor,
    through: Cursor,
    limit: usize,
) -> Result<Stretch> {
    let sql = after_sql();
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![position(after), position(through), limit as i64])?;
    let mut found = Stretch {
        events: Vec::new(),
        last: None,
        is_cut: false,
    };
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        found.last = Some(Cursor(row.get::<_, i64>(0)?.unsigned_abs()));
        let agent = AgentId::from_bytes(row.get(BEHIND)?);
        if let Ok(stored) = StoredEvent::read(row)? {
            found.events.push((agent, stored));
        }
    }
    found.is_cut = count == limit;
    Ok(found)
}

/// The agent's id stands behind the columns that a stored event is read from.
fn after_sql() -> String {
    format!(
        "SELECT {COLUMNS}, agent.id FROM event JOIN agent ON agent.num = event.agent
         WHERE event.position > ?1 AND event.position <= ?2 ORDER BY event.position LIMIT ?3"
    )
}

fn position(cursor: Cursor) -> i64 {
    i64::try_from(cursor.0).unwrap_or(i64::MAX)
}
