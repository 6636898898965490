//! The draft: the part of a reply that has been streamed so far.

use super::row::existing_agent_num;
use crate::error::Result;
use crate::store::Draft;
use agentd_core::id::{AgentId, Incarnation, TryId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// The newest draft and its length.
pub fn stops_at(journal: &Connection, num: i64) -> Result<Option<(TryId, u64)>> {
    let found = journal
        .prepare_cached(
            "SELECT incarnation, try, at + length(bytes) FROM draft WHERE agent = ?1
             ORDER BY incarnation DESC, try DESC, at DESC LIMIT 1",
        )?
        .query_row([num], |row| {
            let request = TryId {
                incarnation: Incarnation(row.get::<_, i64>(0)?.unsigned_abs()),
                n: row.get::<_, i64>(1)?.unsigned_abs(),
            };
            Ok((request, row.get::<_, i64>(2)?.unsigned_abs()))
        })
        .optional()?;
    Ok(found)
}

pub fn read(journal: &Connection, agent: AgentId) -> Result<Option<Draft>> {
    let num = existing_agent_num(journal, agent)?;
    let Some((request, _)) = stops_at(journal, num)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let mut statement = journal.prepare_cached(
        "SELECT bytes FROM draft WHERE agent = ?1 AND incarnation = ?2 AND try = ?3 ORDER BY at",
    )?;
    let parameters = params![num, request.incarnation.0 as i64, request.n as i64];
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        bytes.extend(row.get::<_, Vec<u8>>(0)?);
    }
    Ok(Some(Draft { request, bytes }))
}
