//! The agents that the writer keeps folded between appends.

use super::group::Failure;
use super::{Databases, Thread};
use crate::chain::Hash;
use crate::error::{Disk, Error, Result};
use crate::sqlite::load;
use crate::sqlite::row::IdParam;
use crate::store::{Damage, Fence, Source};
use agentd_core::id::{AgentId, Incarnation, Seq, TryId};
use agentd_core::state::AgentState;
use rusqlite::OptionalExtension as _;
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
    /// The agent as it is now, folded, whatever its owner.
    pub(super) fn agent(
        &mut self,
        databases: &Databases,
        agent: AgentId,
    ) -> Result<&mut Entry, Failure> {
        match self.entries.entry(agent) {
            Known::Occupied(known) => Ok(known.into_mut()),
            Known::Vacant(unknown) => {
                let entry = read(databases, agent, Care::Tail).map_err(contained)?;
                Ok(unknown.insert(entry.ok_or(Error::NoSuchAgent { agent })?))
            }
        }
    }

    /// The same, and its fence checked.
    pub(in crate::sqlite) fn entry(
        &mut self,
        databases: &Databases,
        fence: Fence,
    ) -> Result<&mut Entry, Failure> {
        let agent = fence.agent;
        let entry = self.agent(databases, agent)?;
        if entry.epoch != fence.epoch {
            return Err(Failure::Refused(Error::StaleFence {
                agent,
                held: fence.epoch,
                current: entry.epoch,
            }));
        }
        if let Some(damage) = &entry.damage {
            return Err(Failure::Refused(damage.error(agent)));
        }
        Ok(entry)
    }
}

/// An unreadable page fails the commands that need it, not the rest of the group.
pub(super) fn contained(error: Error) -> Failure {
    match error {
        Error::Unavailable(Disk::Corrupt(_)) => Failure::Refused(error),
        error => error.into(),
    }
}

/// How much is checked before an agent counts as intact.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Care {
    /// The events after the newest snapshot.
    Tail,
    /// Also all events that its window shows.
    Window,
}

pub(in crate::sqlite) fn read(
    databases: &Databases,
    agent: AgentId,
    care: Care,
) -> Result<Option<Entry>> {
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
    let folded = match care {
        Care::Tail => load::fold(databases, agent, num)?,
        Care::Window => load::checked(databases, agent, num)?,
    };
    Ok(Some(Entry {
        num,
        epoch,
        source: folded.source,
        draft: super::super::drafts::stops_at(journal, num)?,
        state: folded.state,
        chain: folded.chain,
        ended,
        listed_at,
        damage: folded.damage,
    }))
}
