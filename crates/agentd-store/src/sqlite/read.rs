//! Pages of events.

use super::cursor;
use super::row::{BEHIND, COLUMNS, EventRow, IdParam, existing_agent_num, sql_seq};
use super::sql_error::is_corrupt;
use crate::damage::Unreadable;
use crate::error::{Error, Result};
use crate::store::*;
use agentd_core::event::{Event, Kind};
use agentd_core::id::{AgentId, Seq};
use agentd_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

/// The maximum number of events on one page.
pub const MAX_PAGE: usize = 1000;

pub fn page(journal: &Connection, query: &ReadQuery) -> Result<Page> {
    let num = existing_agent_num(journal, query.agent)?;
    let limit = query.limit.clamp(1, MAX_PAGE);
    let kinds = only(query.kinds);
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2
             AND (?3 IS NULL OR conversation = ?3) AND (?4 IS NULL OR turn = ?4)
             AND (?5 IS NULL OR at >= ?5) AND (?6 IS NULL OR at <= ?6) {kinds}
         ORDER BY seq LIMIT ?7"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        num,
        sql_seq(query.after),
        query.conversation.as_ref().map(|id| IdParam(id.as_bytes())),
        query.turn.as_ref().map(|id| IdParam(id.as_bytes())),
        query.since.map(Timestamp::as_millis),
        query.until.map(Timestamp::as_millis),
        (limit + 1) as i64,
    ])?;
    let mut events: Vec<Event> = Vec::new();
    let mut next = None;
    loop {
        let read = match rows.next() {
            Ok(None) => break,
            Ok(Some(_)) if events.len() == limit => Ok(None),
            Ok(Some(row)) => EventRow::read_of(row, query.agent)
                .and_then(|stored| {
                    let last = events.last().map_or(query.after, |event| event.seq);
                    follows(&stored, last, query)?;
                    match query.texts {
                        Texts::Whole => stored.decode(journal, query.agent),
                        Texts::WithoutLong => stored.decode_without_long(query.agent),
                    }
                })
                .map(Some),
            Err(error) => Err(unreadable(error, query, events.last())),
        };
        match read {
            Ok(Some(event)) => events.push(event),
            // The events before the damage are returned; the next page reports the damage.
            Err(error) if events.is_empty() => return Err(error),
            Ok(None) | Err(_) => {
                next = events.last().map(|event: &Event| event.seq);
                break;
            }
        }
    }
    Ok(Page { events, next })
}

/// The condition that selects events of these kinds. Their names are constants of the program.
fn only(kinds: &[Kind]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let names = kinds.iter().map(|kind| format!("'{}'", kind.name()));
    format!("AND kind IN ({})", names.collect::<Vec<_>>().join(", "))
}

/// A damaged database page counts as damage of the agent whose events are read.
fn unreadable(error: rusqlite::Error, query: &ReadQuery, last: Option<&Event>) -> Error {
    match is_corrupt(&error) {
        true => Error::Damaged {
            agent: query.agent,
            seq: last.map_or(query.after, |event| event.seq).next(),
            reason: Unreadable::Page,
        },
        false => error.into(),
    }
}

/// Sequence numbers have no gaps: a missing one is a lost event.
fn follows(stored: &EventRow, last: Seq, query: &ReadQuery) -> Result<()> {
    if query.is_whole() && stored.event.seq != last.next() {
        return Err(Error::Damaged {
            agent: query.agent,
            seq: last.next(),
            reason: Unreadable::Gap,
        });
    }
    Ok(())
}

pub fn global_page(journal: &Connection, after: &Cursor, limit: usize) -> Result<GlobalPage> {
    let after = cursor::position(after)?;
    let limit = limit.clamp(1, MAX_PAGE);
    let mut events: Vec<(Cursor, Event)> = Vec::new();
    let mut next = None;
    let sql = after_sql();
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, i64::MAX, (limit + 1) as i64])?;
    loop {
        let read = match rows.next() {
            Ok(None) => break,
            Ok(Some(_)) if events.len() == limit => Ok(None),
            Ok(Some(row)) => global_row(journal, row).map(Some),
            Err(error) => Err(error.into()),
        };
        match read {
            Ok(Some(found)) => events.push(found),
            // As in a page of one agent: the next page reports the damage.
            Err(error) if events.is_empty() => return Err(error),
            Ok(None) | Err(_) => {
                next = events.last().map(|(cursor, _)| cursor.clone());
                break;
            }
        }
    }
    Ok(GlobalPage { events, next })
}

fn global_row(journal: &Connection, row: &Row<'_>) -> Result<(Cursor, Event)> {
    let agent: Option<[u8; 16]> = row.get(BEHIND)?;
    let position: i64 = row.get(0)?;
    let agent = agent.ok_or(Error::NoAgent { position })?;
    let agent = AgentId::from_bytes(agent);
    let stored = EventRow::read_of(row, agent)?;
    let cursor = cursor::of_position(stored.position);
    Ok((cursor, stored.decode(journal, agent)?))
}

/// The position of the last event.
pub fn end(journal: &Connection) -> Result<Cursor> {
    let sql = "SELECT coalesce(max(position), 0) FROM event";
    let last: i64 = journal.query_row(sql, [], |row| row.get(0))?;
    Ok(cursor::of_position(last))
}

/// A range of the order of all commits.
pub struct Stretch {
    /// The readable events.
    pub events: Vec<(AgentId, EventRow)>,
    /// The position where it ends; none if it is empty.
    pub last: Option<i64>,
    /// The limit was reached; there may be more after it.
    pub is_cut: bool,
}

/// Up to `limit` events after `after` and up to `through`.
pub fn stretch(journal: &Connection, after: i64, through: i64, limit: usize) -> Result<Stretch> {
    let sql = after_sql();
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, through, limit as i64])?;
    let mut found = Stretch {
        events: Vec::new(),
        last: None,
        is_cut: false,
    };
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        found.last = Some(row.get(0)?);
        let agent: Option<[u8; 16]> = row.get(BEHIND)?;
        if let (Some(agent), Ok(stored)) = (agent, EventRow::read(row)?) {
            found.events.push((AgentId::from_bytes(agent), stored));
        }
    }
    found.is_cut = count == limit;
    Ok(found)
}

/// The agent's id is selected after the columns of a stored event. Quarantined rows have a negative agent. Any other row that
/// belongs to no agent is damaged, and must not be left out silently.
fn after_sql() -> String {
    format!(
        "SELECT {COLUMNS}, agent.id FROM event LEFT JOIN agent ON agent.num = event.agent
         WHERE event.agent > 0 AND event.position > ?1 AND event.position <= ?2 ORDER BY event.position LIMIT ?3"
    )
}
