//! Full-text search.

use super::cursor;
use super::readers::Databases;
use super::row::{BEHIND, COLUMNS, EventRow};
use super::shard;
use crate::error::{Error, Result};
use crate::store::*;
use agentd_core::event::Event;
use agentd_core::id::AgentId;
use rusqlite::{Connection, params};

const MAX_PAGE: usize = 200;
/// Index hits that are checked for one page; hits of other agents count as well.
const MAX_LOOKED_AT: usize = 100_000;

/// A page that is being filled.
struct Hits<'a> {
    query: &'a SearchQuery,
    limit: usize,
    hits: Vec<(Cursor, Event)>,
    looked_at: usize,
    next: Option<Cursor>,
}

pub fn search(databases: &Databases, query: &SearchQuery) -> Result<SearchPage> {
    let before = match &query.before {
        Some(cursor) => cursor::position(cursor)?,
        None => i64::MAX,
    };
    let mut page = Hits {
        query,
        limit: query.limit.clamp(1, MAX_PAGE),
        hits: Vec::new(),
        looked_at: 0,
        next: None,
    };
    // Without an index, nothing has been indexed yet.
    if let Some(derived) = databases.derived.get() {
        // One transaction: a purge may drop a shard in between.
        let moment = derived.unchecked_transaction()?;
        for num in shard::shards(derived)? {
            let journal = &databases.journal;
            if num <= shard::shard_of(before) && !page.look_in(journal, derived, num, before)? {
                break;
            }
        }
        moment.commit()?;
    }
    Ok(SearchPage {
        hits: page.hits,
        next: page.next,
    })
}

impl Hits<'_> {
    /// False once the page is full.
    fn look_in(
        &mut self,
        journal: &Connection,
        derived: &Connection,
        num: i64,
        before: i64,
    ) -> Result<bool> {
        let mut places = derived.prepare_cached(&shard::places_sql(num))?;
        let mut rows = places
            .query(params![self.query.text, before])
            .map_err(bad_query)?;
        while let Some(row) = rows.next().map_err(bad_query)? {
            let position: i64 = row.get(0)?;
            // The limit is reached; the next page continues from here.
            if self.looked_at == MAX_LOOKED_AT {
                self.next = Some(cursor::of_position(position + 1));
                return Ok(false);
            }
            self.looked_at += 1;
            let Some(event) = self.event_at(journal, position)? else {
                continue;
            };
            if self.hits.len() == self.limit {
                self.next = self.hits.last().map(|(cursor, _)| cursor.clone());
                return Ok(false);
            }
            self.hits.push((cursor::of_position(position), event));
        }
        Ok(true)
    }

    /// None if it was purged since it was indexed, cannot be read, or belongs to another agent.
    fn event_at(&self, journal: &Connection, position: i64) -> Result<Option<Event>> {
        let sql = format!(
            "SELECT {COLUMNS}, agent.id FROM event JOIN agent ON agent.num = event.agent
             WHERE event.position = ?1"
        );
        let mut statement = journal.prepare_cached(&sql)?;
        let mut found = statement.query([position])?;
        let Some(row) = found.next()? else {
            return Ok(None);
        };
        let agent = AgentId::from_bytes(row.get(BEHIND)?);
        if self.query.agent.is_some_and(|wanted| wanted != agent) {
            return Ok(None);
        }
        let Ok(stored) = EventRow::read(row)? else {
            return Ok(None);
        };
        if stored.event.body.is_none() {
            return Ok(None);
        }
        Ok(stored.try_decode(journal, agent)?.ok())
    }
}

/// FTS5 reports what it cannot parse as an ordinary SQL error.
fn bad_query(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::Unknown) => Error::BadQuery(error.to_string()),
        _ => error.into(),
    }
}
