//! The draft: the part of a reply that has been streamed so far.

use super::row::existing_agent_num;
use super::writer::{Databases, Entry, Failure, Thread, Written};
use crate::error::{Error, Result};
use crate::store::*;
use agentd_core::id::{AgentId, Incarnation, TryId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// One flush is a few KiB; this is a safety limit, not a target.
const MAX_CHUNK: usize = 1024 * 1024;
/// More than any model writes in one reply.
const MAX_DRAFT: u64 = 32 * 1024 * 1024;

pub fn check_size(chunk: &DraftChunk) -> Result<()> {
    let size = chunk.bytes.len();
    if size > MAX_CHUNK {
        return Err(Error::TooLarge {
            what: "a piece of a draft",
            size,
            limit: MAX_CHUNK,
        });
    }
    if chunk.offset.saturating_add(size as u64) > MAX_DRAFT {
        return Err(Error::TooLarge {
            what: "a draft",
            size: usize::try_from(chunk.offset).unwrap_or(usize::MAX),
            limit: MAX_DRAFT as usize,
        });
    }
    Ok(())
}

pub(super) fn write(
    thread: &mut Thread,
    databases: &Databases,
    fence: Fence,
    chunk: &DraftChunk,
) -> Result<(DraftAck, Option<Written>), Failure> {
    let entry = thread.entry(databases, fence)?;
    let request = chunk.request;
    let expected = match entry.draft {
        Some((of, stops_at)) if of == request => stops_at,
        // A newer try replaces an older one that never ended, never the other way round.
        Some((of, _)) if of > request => return Ok((DraftAck::Dropped, None)),
        _ => 0,
    };
    if request <= entry.ended || chunk.offset != expected {
        return Ok((DraftAck::Dropped, None));
    }
    // Nothing to store; and two rows cannot have the same offset.
    if chunk.bytes.is_empty() {
        return Ok((DraftAck::Kept, None));
    }
    databases
        .journal
        .prepare_cached(
            "INSERT INTO draft (agent, incarnation, try, at, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            entry.num,
            request.incarnation.0 as i64,
            request.n as i64,
            chunk.offset as i64,
            chunk.bytes,
        ])?;
    entry.draft = Some((request, expected + chunk.bytes.len() as u64));
    let written = Written::Draft {
        num: entry.num,
        request,
        offset: chunk.offset,
    };
    Ok((DraftAck::Kept, Some(written)))
}

/// The try has ended: its draft and all older ones are deleted; later chunks are dropped.
pub(super) fn end(
    journal: &Connection,
    entry: &mut Entry,
    request: TryId,
) -> Result<(), rusqlite::Error> {
    if request <= entry.ended {
        return Ok(());
    }
    entry.ended = request;
    let parameters = params![entry.num, request.incarnation.0 as i64, request.n as i64,];
    journal
        .prepare_cached("UPDATE agent SET ended_incarnation = ?2, ended_try = ?3 WHERE num = ?1")?
        .execute(parameters)?;
    if entry.draft.take_if(|(of, _)| *of <= request).is_some() {
        journal
            .prepare_cached(
                "DELETE FROM draft WHERE agent = ?1 AND (incarnation, try) <= (?2, ?3)",
            )?
            .execute(parameters)?;
    }
    Ok(())
}

/// The newest draft and its length.
pub(super) fn stops_at(journal: &Connection, num: i64) -> Result<Option<(TryId, u64)>> {
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

pub(super) fn read(journal: &Connection, agent: AgentId) -> Result<Option<Draft>> {
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
