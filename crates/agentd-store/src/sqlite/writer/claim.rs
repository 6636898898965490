//! Ownership of an agent, and what becomes of a damaged tail when a new owner takes over.

use super::entry::{self, Entry};
use super::group::Failure;
use super::{Databases, Thread, append};
use crate::error::{Error, Result};
use crate::sqlite::row::{IdParam, sql_seq};
use crate::store::{Claim, Damage, Fence};
use agentd_core::event::{NewEvent, Quarantined};
use agentd_core::id::AgentId;
use rusqlite::params;

pub(super) fn claim(
    thread: &mut Thread,
    databases: &Databases,
    agent: AgentId,
    owner: &str,
) -> Result<Claim, Failure> {
    let journal = &databases.journal;
    let epoch: i64 = journal
        .prepare_cached(
            "INSERT INTO agent (id, fence, owner) VALUES (?1, 1, ?2)
             ON CONFLICT (id) DO UPDATE SET fence = fence + 1, owner = excluded.owner
             RETURNING fence",
        )?
        .query_row(params![IdParam(agent.as_bytes()), owner], |row| row.get(0))?;
    let fence = Fence {
        agent,
        epoch: epoch.unsigned_abs(),
    };
    // Read anew: whoever owned it before may have been another process.
    thread.entries.remove(&agent);
    let entry = entry::read(databases, agent)?.ok_or(Error::NoSuchAgent { agent })?;
    let quarantined = match entry.damage.clone() {
        Some(damage) => Some(quarantine(thread, databases, entry, fence, damage)?),
        None => {
            thread.entries.insert(agent, entry);
            None
        }
    };
    Ok(Claim { fence, quarantined })
}

/// Moves the damaged events aside, as they are, and notes in the journal that this was done.
fn quarantine(
    thread: &mut Thread,
    databases: &Databases,
    mut entry: Entry,
    fence: Fence,
    damage: Damage,
) -> Result<Damage, Failure> {
    // With not even a conversation left there is nothing to go on with: that needs a person.
    let Some(conversation) = entry.state.tree.current() else {
        return Err(Failure::Refused(Error::Damaged {
            agent: fence.agent,
            seq: damage.from,
            reason: damage.reason,
        }));
    };
    let from = sql_seq(damage.from);
    databases.journal.execute(
        "INSERT INTO quarantine (position, agent, seq, at, conversation, turn, kind, version, body, apart,
                                 salt, digest, chain, source_incarnation, source_n)
         SELECT position, agent, seq, at, conversation, turn, kind, version, body, apart, salt,
                digest, chain, source_incarnation, source_n
         FROM event WHERE agent = ?1 AND seq >= ?2 ORDER BY seq",
        params![entry.num, from],
    )?;
    databases.journal.execute(
        "DELETE FROM event WHERE agent = ?1 AND seq >= ?2",
        params![entry.num, from],
    )?;
    tracing::warn!(
        agent = %fence.agent, from = damage.from.0, through = damage.through.0,
        reason = %damage.reason, "a damaged tail was quarantined"
    );
    let event = NewEvent {
        at: entry.state.updated_at,
        conversation,
        turn: None,
        body: Quarantined {
            from: damage.from,
            through: damage.through,
        }
        .into(),
    };
    entry.damage = None;
    entry.source = None;
    thread.entries.insert(fence.agent, entry);
    let note = append::prepare(crate::store::Append::new(fence, vec![event]))?;
    append::apply(thread, databases, note)?;
    Ok(damage)
}
