//! Snapshots: the complete agent state, and the window as a skeleton. A cache, checked before it is used.

use super::readers::Databases;
use super::row::{IdParam, existing_agent_num, seq, sql_seq};
use super::sql_error::is_corrupt;
use crate::chain::{Hash, content_hash};
use crate::error::{Error, Result};
use crate::rules::fold::Folded;
use crate::store::Source;
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::{AgentState, FOLD_VERSION, Segment};
use agentd_core::window::Skeleton;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

/// How many snapshots are tried. The newest one fits the journal, except after its events were quarantined.
const TRIED: u64 = 8;
const MAX_BYTES: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub struct Snapshot {
    pub conversation: ConversationId,
    pub chain: Hash,
    pub state: AgentState,
    pub skeleton: Skeleton,
    /// The newest append that had a counter, with its first and last event.
    pub source: Option<(Source, Seq, Seq)>,
}

impl Snapshot {
    /// The fold at the time of the snapshot.
    pub fn folded(&self) -> Folded {
        Folded {
            state: self.state.clone(),
            chain: self.chain,
            source: self.source,
            damage: None,
        }
    }
}

const COLUMNS: &str = "conversation, chain, state, skeleton, source, sum, seq";

struct Stored {
    conversation: ConversationId,
    chain: Hash,
    state: Vec<u8>,
    skeleton: Vec<u8>,
    source: Option<String>,
    sum: Hash,
    seq: i64,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            conversation: ConversationId::from_bytes(row.get(0)?),
            chain: row.get(1)?,
            state: row.get(2)?,
            skeleton: row.get(3)?,
            source: row.get(4)?,
            sum: row.get(5)?,
            seq: row.get(6)?,
        })
    }

    /// None if it does not match this journal or cannot be read: it is then ignored.
    fn open(self, journal: &Connection, num: i64) -> Result<Option<Snapshot>> {
        let chain: Option<Hash> = journal
            .prepare_cached("SELECT chain FROM event WHERE agent = ?1 AND seq = ?2")?
            .query_row(params![num, self.seq], |row| row.get(0))
            .optional()
            .or_else(|error| match is_corrupt(&error) {
                true => Ok(None),
                false => Err(error),
            })?;
        if chain != Some(self.chain) || sum(&self.state, &self.skeleton, &self.source) != self.sum {
            return Ok(None);
        }
        let (Some(state), Some(skeleton)) = (unpack(&self.state), unpack(&self.skeleton)) else {
            return Ok(None);
        };
        let source = self.source.as_deref().map(serde_json::from_str).transpose();
        let Ok(source) = source else {
            return Ok(None);
        };
        Ok(Some(Snapshot {
            conversation: self.conversation,
            chain: self.chain,
            state,
            skeleton,
            source,
        }))
    }
}

fn sum(state: &[u8], skeleton: &[u8], source: &Option<String>) -> Hash {
    let source = source.as_deref().unwrap_or_default();
    let mut all = Vec::with_capacity(state.len() + skeleton.len() + source.len() + 16);
    for part in [state, skeleton] {
        all.extend((part.len() as u64).to_le_bytes());
        all.extend(part);
    }
    all.extend(source.as_bytes());
    content_hash(&all)
}

fn pack(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(value).map_err(Error::Encode)?;
    zstd::bulk::compress(&json, 1).map_err(Error::ExportIo)
}

fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Option<T> {
    let json = zstd::bulk::decompress(packed, MAX_BYTES).ok()?;
    serde_json::from_slice(&json).ok()
}

/// The newest snapshot of an agent.
pub fn newest(databases: &Databases, agent: AgentId, num: i64) -> Result<Option<Snapshot>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM snapshot WHERE agent = ?1 AND fold = ?2
         ORDER BY seq DESC LIMIT {TRIED}"
    );
    let parameters = params![IdParam(agent.as_bytes()), FOLD_VERSION];
    find(databases, num, &sql, parameters)
}

/// The newest snapshot whose window belongs to this part of a lineage.
pub fn of_conversation(databases: &Databases, segment: &Segment) -> Result<Option<Snapshot>> {
    let num = existing_agent_num(&databases.journal, segment.agent)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM snapshot
         WHERE agent = ?1 AND conversation = ?2 AND seq <= ?3 AND fold = ?4
         ORDER BY seq DESC LIMIT {TRIED}"
    );
    let parameters = params![
        IdParam(segment.agent.as_bytes()),
        IdParam(segment.conversation.as_bytes()),
        sql_seq(segment.through),
        FOLD_VERSION,
    ];
    find(databases, num, &sql, parameters)
}

/// The first usable row.
fn find(
    databases: &Databases,
    num: i64,
    sql: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<Option<Snapshot>> {
    let Some(derived) = databases.derived.get() else {
        return Ok(None);
    };
    let stored = derived.prepare_cached(sql).and_then(|mut found| {
        let rows = found.query_map(parameters, Stored::read)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    // A damaged cache only costs time.
    let stored = stored.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read snapshots");
        Vec::new()
    });
    for stored in stored {
        if let Some(snapshot) = stored.open(&databases.journal, num)? {
            return Ok(Some(snapshot));
        }
    }
    Ok(None)
}

/// The last event that the snapshots of an agent include, ignoring those after the end of its journal.
pub fn reach(derived: &Connection, agent: AgentId, head: Seq) -> Result<Seq> {
    let reach: Option<i64> = derived
        .prepare_cached(
            "SELECT seq FROM snapshot WHERE agent = ?1 AND fold = ?2 AND seq <= ?3
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(
            params![IdParam(agent.as_bytes()), FOLD_VERSION, sql_seq(head)],
            |row| row.get(0),
        )
        .optional()?;
    Ok(reach.map_or(Seq::ZERO, seq))
}

/// Writes a snapshot. Deletes those after it, which include events that were quarantined since.
pub fn put(derived: &Connection, agent: AgentId, snapshot: &Snapshot) -> Result<()> {
    let head = sql_seq(snapshot.state.head);
    let (state, skeleton) = (pack(&snapshot.state)?, pack(&snapshot.skeleton)?);
    let source = snapshot.source.map(|source| serde_json::to_string(&source));
    let source = source.transpose().map_err(Error::Encode)?;
    derived
        .prepare_cached(
            "INSERT OR REPLACE INTO snapshot (agent, seq, conversation, chain, fold, state,
                                              skeleton, source, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            IdParam(agent.as_bytes()),
            head,
            IdParam(snapshot.conversation.as_bytes()),
            snapshot.chain,
            FOLD_VERSION,
            state,
            skeleton,
            source,
            sum(&state, &skeleton, &source),
        ])?;
    derived
        .prepare_cached("DELETE FROM snapshot WHERE agent = ?1 AND seq > ?2")?
        .execute(params![IdParam(agent.as_bytes()), head])?;
    Ok(())
}

/// Deletes all snapshots of an agent: one that refers to purged text cannot be restored.
pub fn forget(derived: &Connection, agent: AgentId) -> Result<()> {
    derived.execute(
        "DELETE FROM snapshot WHERE agent = ?1",
        [IdParam(agent.as_bytes())],
    )?;
    Ok(())
}
