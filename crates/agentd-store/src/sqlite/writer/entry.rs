//! What the writer remembers of an agent between appends.

use super::group::Failure;
use super::{Databases, Thread};
use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::sqlite::load;
use crate::sqlite::row::{self, IdParam};
use crate::store::{Damage, Fence, Source};
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId};
use agentd_core::state::AgentState;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::hash_map::Entry as Known;

pub(in crate::sqlite) struct Entry {
    pub num: i64,
    pub epoch: u64,
    pub state: AgentState,
    pub chain: Hash,
    /// The newest append that had a counter, and where it is.
    pub source: Option<(Source, Seq, Seq)>,
    /// The newest try whose draft has ended.
    pub ended: TryId,
    /// Where the draft of a try stops.
    pub draft: Option<(TryId, u64)>,
    /// `updated_at` as the list has it.
    pub listed_at: i64,
    pub damage: Option<Damage>,
}

impl Thread {
    /// The agent as it is now, folded, and its fence checked.
    pub(in crate::sqlite) fn entry(
        &mut self,
        databases: &Databases,
        fence: Fence,
    ) -> Result<&mut Entry, Failure> {
        let agent = fence.agent;
        let entry = match self.entries.entry(agent) {
            Known::Occupied(known) => known.into_mut(),
            Known::Vacant(unknown) => {
                let entry = read(databases, agent)?.ok_or(Error::NoSuchAgent { agent })?;
                unknown.insert(entry)
            }
        };
        if entry.epoch != fence.epoch {
            return Err(Failure::Refused(Error::StaleFence {
                agent,
                held: fence.epoch,
                current: entry.epoch,
            }));
        }
        if let Some(damage) = &entry.damage {
            return Err(Failure::Refused(Error::Damaged {
                agent,
                seq: damage.from,
                reason: damage.reason.clone(),
            }));
        }
        Ok(entry)
    }

    /// The agent's current conversation, if the fence still holds.
    pub(super) fn check_fence(
        &mut self,
        databases: &Databases,
        fence: Fence,
    ) -> Result<Option<ConversationId>> {
        match self.entry(databases, fence) {
            Ok(entry) => Ok(entry.state.tree.current()),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Disk(disk)) => Err(Error::NotCommitted(disk)),
        }
    }
}

pub(in crate::sqlite) fn read(databases: &Databases, agent: AgentId) -> Result<Option<Entry>> {
    let journal = &databases.journal;
    let found = journal
        .prepare_cached(
            "SELECT num, fence, ended_incarnation, ended_try, updated_at FROM agent WHERE id = ?1",
        )?
        .query_row([IdParam(agent.as_bytes())], |row| {
            let ended = TryId {
                incarnation: Incarnation(row.get::<_, i64>(2)?.unsigned_abs()),
                n: row.get::<_, i64>(3)?.unsigned_abs(),
            };
            let epoch = row.get::<_, i64>(1)?.unsigned_abs();
            Ok((row.get::<_, i64>(0)?, epoch, ended, row.get::<_, i64>(4)?))
        })
        .optional()?;
    let Some((num, epoch, ended, listed_at)) = found else {
        return Ok(None);
    };
    let folded = load::fold(databases, agent, num)?;
    Ok(Some(Entry {
        num,
        epoch,
        source: newest_source(journal, num)?,
        draft: super::super::drafts::stops_at(journal, num)?,
        state: folded.state,
        chain: folded.chain,
        ended,
        listed_at,
        damage: folded.damage,
    }))
}

/// The newest append that had a counter. Appends without one are rare in between.
fn newest_source(journal: &Connection, num: i64) -> Result<Option<(Source, Seq, Seq)>> {
    let newest = journal
        .prepare_cached(
            "SELECT source_incarnation, source_n, seq FROM event
             WHERE agent = ?1 AND source_n IS NOT NULL ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([num], |row| {
            let incarnation: i64 = row.get(0)?;
            let n: i64 = row.get(1)?;
            Ok((incarnation, n, row.get::<_, i64>(2)?))
        })
        .optional()?;
    let Some((incarnation, n, last)) = newest else {
        return Ok(None);
    };
    // One append is one run of the journal.
    let before: Option<i64> = journal
        .prepare_cached(
            "SELECT seq FROM event WHERE agent = ?1 AND seq < ?2
             AND (source_n IS NOT ?3 OR source_incarnation IS NOT ?4)
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![num, last, n, incarnation], |row| row.get(0))
        .optional()?;
    let source = Source {
        incarnation: Incarnation(incarnation.unsigned_abs()),
        n: n.unsigned_abs(),
    };
    let first = row::seq(before.unwrap_or(0)).next();
    Ok(Some((source, first, row::seq(last))))
}
