//! Finding words.

use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent};
use crate::error::{Error, Result};
use crate::store::*;
use agentd_core::id::AgentId;
use rusqlite::params;

const MAX_PAGE: usize = 200;
/// Hits of other agents that are looked at for one page.
const MAX_LOOKED_AT: usize = 100_000;

pub fn search(databases: &Databases, query: &SearchQuery) -> Result<SearchPage> {
    let limit = query.limit.clamp(1, MAX_PAGE);
    let before = query.before.map_or(i64::MAX, |cursor| {
        i64::try_from(cursor.0).unwrap_or(i64::MAX)
    });
    let mut places = databases.derived.prepare_cached(
        "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC",
    )?;
    let columns = COLUMNS.replace("position", "event.position");
    let sql = format!(
        "SELECT {columns}, agent.id FROM event JOIN agent ON agent.num = event.agent
         WHERE event.position = ?1"
    );
    let mut events = databases.journal.prepare_cached(&sql)?;
    let mut hits: Vec<(Cursor, agentd_core::event::Event)> = Vec::new();
    let mut next = None;
    let mut rows = places
        .query(params![query.text, before])
        .map_err(bad_query)?;
    let mut looked_at = 0;
    while let Some(row) = rows.next().map_err(bad_query)? {
        let position: i64 = row.get(0)?;
        looked_at += 1;
        let mut found = events.query([position])?;
        let Some(row) = found.next()? else { continue };
        let agent = AgentId::from_bytes(row.get(12)?);
        let stored = StoredEvent::read(row)?;
        // Purged since it was indexed, or somebody else's.
        if stored.body.is_none() || query.agent.is_some_and(|wanted| wanted != agent) {
            continue;
        }
        if hits.len() == limit || looked_at > MAX_LOOKED_AT {
            next = hits.last().map(|(cursor, _)| *cursor);
            break;
        }
        let cursor = Cursor(position.unsigned_abs());
        hits.push((cursor, stored.decode(&databases.journal, agent)?));
    }
    Ok(SearchPage { hits, next })
}

/// FTS5 reports what it cannot parse as an ordinary SQL error.
fn bad_query(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::Unknown) => Error::BadQuery(error.to_string()),
        _ => error.into(),
    }
}
