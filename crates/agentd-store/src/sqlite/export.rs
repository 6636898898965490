//! Writes an agent to a portable file, and before it what its branches need of others.

use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent, existing_agent_num, sql_seq};
use super::{blobs, load};
use crate::chain::unhex;
use crate::error::{Error, Result, Unreadable};
use crate::export::{Row, Writer};
use crate::store::Exported;
use agentd_core::id::{AgentId, Seq};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::io::Write;

/// Events read at a time, so that a long export holds nobody up.
const BATCH: usize = 500;

pub fn write(
    databases: &Databases,
    agent: AgentId,
    out: Box<dyn Write + Send>,
) -> Result<Exported> {
    let (state, damage) = load::state(databases, agent)?;
    if let Some(damage) = damage {
        return Err(Error::Damaged {
            agent,
            seq: damage.from,
            reason: damage.reason,
        });
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

/// The agents that this one's branches reach into, and how far.
fn ancestors(databases: &Databases, agent: AgentId) -> Result<BTreeMap<AgentId, Seq>> {
    let mut needed = BTreeMap::new();
    let mut to_look_at = vec![agent];
    while let Some(next) = to_look_at.pop() {
        let (state, _) = load::state(databases, next)?;
        for origin in state
            .tree
            .iter()
            .filter_map(|conversation| conversation.from)
        {
            if origin.agent == agent || origin.agent == next {
                continue;
            }
            let through = needed.entry(origin.agent).or_insert_with(|| {
                to_look_at.push(origin.agent);
                Seq::ZERO
            });
            *through = (*through).max(origin.seq);
        }
    }
    Ok(needed)
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
        let mut statement = journal.prepare_cached(&sql)?;
        let parameters = params![num, sql_seq(after), sql_seq(through), BATCH as i64];
        let rows: Vec<StoredEvent> = statement
            .query_map(parameters, StoredEvent::read)?
            .collect::<rusqlite::Result<_>>()?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.seq;
        for row in rows {
            write_row(journal, agent, row, writer)?;
        }
    }
}

fn write_row<W: Write>(
    journal: &Connection,
    agent: AgentId,
    row: StoredEvent,
    writer: &mut Writer<W>,
) -> Result<()> {
    if let Some(apart) = &row.apart {
        let missing = || Error::Damaged {
            agent,
            seq: row.seq,
            reason: Unreadable::BlobMissing,
        };
        for hash in blobs::hashes(apart).ok_or_else(missing)? {
            let hash = unhex(&hash).ok_or_else(missing)?;
            let text = blobs::read(journal, &hash)?.ok_or_else(missing)?;
            writer.blob(hash, text)?;
        }
    }
    writer.event(Row {
        seq: row.seq,
        at: row.at,
        conversation: row.conversation,
        turn: row.turn,
        kind: row.kind,
        version: row.version,
        body: row.body,
        apart: row.apart,
        salt: row.salt,
        digest: row.digest,
        chain: row.chain,
    })
}
