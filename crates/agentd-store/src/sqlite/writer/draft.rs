//! One piece of a draft, and the end of a draft.

use super::Thread;
use super::failure::Failure;
use crate::error::Result;
use crate::rules::draft::{Verdict, judge};
use crate::sqlite::entry::Entry;
use crate::sqlite::readers::Databases;
use crate::sqlite::written::Written;
use crate::store::{DraftAck, DraftChunk, Fence};
use agentd_core::id::TryId;
use rusqlite::{Connection, params};

pub(super) fn write(
    thread: &mut Thread,
    databases: &Databases,
    fence: Fence,
    chunk: &DraftChunk,
) -> Result<(DraftAck, Option<Written>), Failure> {
    let entry = thread.entry(databases, fence)?;
    let request = chunk.request;
    match judge(chunk, entry.draft, entry.ended) {
        Verdict::Drop => return Ok((DraftAck::Dropped, None)),
        // Two rows cannot have the same offset.
        Verdict::Empty => return Ok((DraftAck::Kept, None)),
        Verdict::Keep => {}
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
    entry.draft = Some((request, chunk.offset + chunk.bytes.len() as u64));
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
