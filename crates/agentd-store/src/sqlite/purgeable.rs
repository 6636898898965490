//! What a purge would delete, before it is begun.

use super::fold;
use super::purge::{which, with_words};
use super::purge_files::COUNTED;
use super::readers::Databases;
use super::row::{IdParam, existing_agent_num};
use crate::error::{Error, Result};
use crate::rules::purge::{Loses, purgeable, purgeable_with};
use crate::store::{Deletion, Fence};
use agentd_core::id::{AgentId, ConversationId};
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeSet;

/// An error if the conversation may not be purged, before anything is changed; otherwise what the purge deletes.
pub fn check(databases: &Databases, fence: Fence, conversation: ConversationId) -> Result<Loses> {
    let (state, _) = fold::state(databases, fence.agent)?;
    let (num, held): (i64, i64) = databases.journal.query_row(
        "SELECT num, fence FROM agent WHERE id = ?1",
        [IdParam(fence.agent.as_bytes())],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if held.unsigned_abs() != fence.epoch {
        return Err(Error::StaleFence {
            agent: fence.agent,
            held: fence.epoch,
            current: held.unsigned_abs(),
        });
    }
    let found = purgeable(databases, &state, conversation)?;
    let sql = format!(
        "SELECT count(*), coalesce(sum({COUNTED}), 0) FROM event WHERE {}",
        with_words()
    );
    let (events, kept_bytes): (i64, i64) = databases.journal.query_row(
        &sql,
        params_from_iter(which(num, conversation, found.began, found.head)),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(Loses {
        events: events.unsigned_abs(),
        kept_bytes: kept_bytes.unsigned_abs(),
    })
}

/// What a purge of all these conversations would delete.
pub fn would_purge(
    databases: &Databases,
    agent: AgentId,
    conversations: &[ConversationId],
) -> Result<Deletion> {
    let journal = &databases.journal;
    let moment = journal.unchecked_transaction()?;
    let (state, _) = fold::state(databases, agent)?;
    let num = existing_agent_num(journal, agent)?;
    let mut deletion = Deletion::default();
    let mut blobs = BTreeSet::new();
    let mut positions = BTreeSet::new();
    for conversation in conversations {
        let found = purgeable_with(databases, &state, *conversation, conversations)?;
        let sql = format!("SELECT position FROM event WHERE {}", with_words());
        let mut statement = journal.prepare_cached(&sql)?;
        let which = which(num, *conversation, found.began, found.head);
        let mut rows = statement.query(params_from_iter(which))?;
        while let Some(row) = rows.next()? {
            let position: i64 = row.get(0)?;
            deletion.events += 1;
            positions.insert(position);
            blobs.extend(used_by(journal, position)?);
        }
    }
    for blob in blobs {
        let sql = "SELECT position FROM blob_use WHERE blob = ?1";
        let mut statement = journal.prepare_cached(sql)?;
        let users = statement.query_map([blob], |row| row.get::<_, i64>(0))?;
        let users = users.collect::<rusqlite::Result<BTreeSet<_>>>()?;
        deletion.blobs += u64::from(users.is_subset(&positions));
    }
    // Nothing was written, and a commit would fail after a damaged page.
    drop(moment);
    Ok(deletion)
}

/// The long texts of one event.
fn used_by(journal: &Connection, position: i64) -> Result<Vec<i64>> {
    let sql = "SELECT blob FROM blob_use WHERE position = ?1";
    let mut statement = journal.prepare_cached(sql)?;
    let blobs = statement.query_map([position], |row| row.get(0))?;
    Ok(blobs.collect::<rusqlite::Result<_>>()?)
}
