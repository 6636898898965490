//! An agent as the writer keeps it: folded, with what the next write needs.

use super::readers::Databases;
use super::row::IdParam;
use super::{drafts, fold, load};
use crate::chain::Hash;
use crate::damage::Damage;
use crate::error::Result;
use crate::store::Source;
use agentd_core::id::{AgentId, Incarnation, Seq, TryId};
use agentd_core::state::AgentState;
use rusqlite::OptionalExtension as _;

pub struct Entry {
    pub num: i64,
    pub epoch: u64,
    pub state: AgentState,
    pub chain: Hash,
    /// The newest append that had a counter, with its first and last event.
    pub source: Option<(Source, Seq, Seq)>,
    /// The newest try whose draft has ended.
    pub ended: TryId,
    /// The newest draft and its length.
    pub draft: Option<(TryId, u64)>,
    /// `updated_at` in the agent's row, which may be older than in `state`.
    pub listed_at: i64,
    pub damage: Option<Damage>,
}

/// How much is checked before an agent counts as intact.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// The events after the newest snapshot.
    Tail,
    /// Also all events that its window shows.
    Window,
}

pub fn read(databases: &Databases, agent: AgentId, care: Care) -> Result<Option<Entry>> {
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
        Care::Tail => fold::fold(databases, agent, num)?,
        Care::Window => load::checked(databases, agent, num)?,
    };
    Ok(Some(Entry {
        num,
        epoch,
        source: folded.source,
        draft: drafts::stops_at(journal, num)?,
        state: folded.state,
        chain: folded.chain,
        ended,
        listed_at,
        damage: folded.damage,
    }))
}
