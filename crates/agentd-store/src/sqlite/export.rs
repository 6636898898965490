//! Writes an agent to an export file, after the prefixes of other agents that its branches need.

use super::readers::Databases;
use super::row::{COLUMNS, EventRow, existing_agent_num, sql_seq};
use super::{blobs, fold};
use crate::apart;
use crate::chain::{Hash, unhex};
use crate::damage::Unreadable;
use crate::error::{Error, Result};
use crate::export::Writer;
use crate::rules::export::ancestors;
use crate::store::Exported;
use crate::stored::StoredEvent;
use agentd_core::id::{AgentId, Seq};
use rusqlite::{Connection, params};
use std::io::Write;

/// Events read in one transaction, so that a long export does not block other readers or checkpoints.
const BATCH: usize = 500;
/// Memory limit of a batch, exceeded by at most one event.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

pub fn write(
    databases: &Databases,
    agent: AgentId,
    out: Box<dyn Write + Send>,
) -> Result<Exported> {
    let (state, damage) = fold::state(databases, agent)?;
    if let Some(damage) = damage {
        return Err(Error::of_damage(agent, &damage));
    }
    let ancestors = ancestors(databases, agent)?;
    let mut writer = Writer::new(out, agent)?;
    for (ancestor, through) in &ancestors {
        journal(&databases.journal, *ancestor, *through, &mut writer)?;
    }
    journal(&databases.journal, agent, state.head, &mut writer)?;
    Ok(Exported {
        events: writer.finish()?,
        ancestors: ancestors.len() as u64,
    })
}

fn journal<W: Write>(
    journal: &Connection,
    agent: AgentId,
    through: Seq,
    writer: &mut Writer<W>,
) -> Result<()> {
    writer.journal(agent)?;
    let num = existing_agent_num(journal, agent)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 AND seq <= ?3
         ORDER BY seq LIMIT ?4"
    );
    let mut after = Seq::ZERO;
    loop {
        // One transaction for a row and its blobs: otherwise a purge could delete the blobs in between.
        let moment = journal.unchecked_transaction()?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut statement = journal.prepare_cached(&sql)?;
        let parameters = params![num, sql_seq(after), sql_seq(through), BATCH as i64];
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            let row = EventRow::read_of(row, agent)?.event;
            if row.seq != after.next() {
                return Err(missing_event(agent, after.next()));
            }
            let apart = read_apart(journal, agent, &row)?;
            after = row.seq;
            bytes += row.body.as_ref().map_or(0, String::len);
            bytes += apart.iter().map(|(_, text)| text.len()).sum::<usize>();
            batch.push((row, apart));
            if bytes > BATCH_BYTES {
                break;
            }
        }
        drop(rows);
        drop(statement);
        moment.commit()?;
        if batch.is_empty() && after < through {
            return Err(missing_event(agent, after.next()));
        }
        if batch.is_empty() {
            return Ok(());
        }
        for (row, apart) in batch {
            for (hash, text) in apart {
                writer.blob(hash, text)?;
            }
            writer.event(row)?;
        }
    }
}

/// Sequence numbers have no gaps: a missing one is a lost event.
const fn missing_event(agent: AgentId, seq: Seq) -> Error {
    Error::Damaged {
        agent,
        seq,
        reason: Unreadable::Gap,
    }
}

fn read_apart(
    journal: &Connection,
    agent: AgentId,
    row: &StoredEvent,
) -> Result<Vec<(Hash, String)>> {
    let Some(apart) = &row.apart else {
        return Ok(Vec::new());
    };
    let missing = || Error::Damaged {
        agent,
        seq: row.seq,
        reason: Unreadable::BlobMissing,
    };
    let mut found = Vec::new();
    for hash in apart::hashes(apart).ok_or_else(missing)? {
        let hash = unhex(&hash).ok_or_else(missing)?;
        let text = blobs::read(journal, &hash)?.ok_or_else(missing)?;
        found.push((hash, text));
    }
    Ok(found)
}
