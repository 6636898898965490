//! Claiming an agent, and quarantining a damaged tail for the new owner.

use super::failure::{Failure, contained};
use super::{Thread, append};
use crate::damage::{Damage, Unreadable};
use crate::error::{Error, Result};
use crate::sqlite::entry::{self, Care, Entry};
use crate::sqlite::readers::Databases;
use crate::sqlite::row::{IdParam, sql_seq};
use crate::store::{Append, Claim, Fence};
use agentd_core::event::NewEvent;
use agentd_core::id::{AgentId, TryId};
use rusqlite::{Connection, params};

/// A refused claim changes nothing; the previous owner keeps its fence.
pub(super) fn claim(
    thread: &mut Thread,
    databases: &Databases,
    agent: AgentId,
    owner: &str,
) -> Result<Claim, Failure> {
    let journal = &databases.journal;
    journal.execute_batch("SAVEPOINT claim")?;
    let claimed = take_over(thread, databases, agent, owner);
    match &claimed {
        Ok(_) => {}
        Err(Failure::Refused(_)) => {
            thread.entries.remove(&agent);
            journal.execute_batch("ROLLBACK TO claim")?;
        }
        // The whole group is rolled back.
        Err(Failure::Disk(_)) => return claimed,
    }
    journal.execute_batch("RELEASE claim")?;
    claimed
}

fn take_over(
    thread: &mut Thread,
    databases: &Databases,
    agent: AgentId,
    owner: &str,
) -> Result<Claim, Failure> {
    let epoch: i64 = databases
        .journal
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
    // Read again: the previous owner may have been another process.
    let entry = entry::read(databases, agent, Care::Window).map_err(contained)?;
    let mut entry = entry.ok_or(Error::NoSuchAgent { agent })?;
    let quarantined = entry.damage.take();
    if let Some(damage) = &quarantined
        && damage.reason == Unreadable::Page
    {
        return Err(Failure::Refused(Error::of_damage(agent, damage)));
    }
    let note = match &quarantined {
        Some(damage) => Some(set_aside(&databases.journal, &mut entry, fence, damage)?),
        None => None,
    };
    thread.entries.insert(agent, entry);
    if let Some(note) = note {
        let mut note = append::prepare(Append::new(fence, vec![note]))?;
        let mut statement = append::statement(&databases.journal)?;
        append::apply(thread, databases, &mut statement, &mut note)?;
    }
    Ok(Claim { fence, quarantined })
}

/// Moves the damaged events to quarantine unchanged. The caller appends the returned event, which records it.
fn set_aside(
    journal: &Connection,
    entry: &mut Entry,
    fence: Fence,
    damage: &Damage,
) -> Result<NewEvent, Failure> {
    // Without a conversation the agent cannot continue: a user must decide.
    let Some(note) = damage.note(&entry.state) else {
        return Err(Failure::Refused(Error::of_damage(fence.agent, damage)));
    };
    let tail = params![entry.num, sql_seq(damage.from)];
    journal.execute(
        "INSERT INTO quarantine (position, agent, seq, at, conversation, turn, kind, version, body,
                                 apart, salt, digest, chain, source_incarnation, source_n)
         SELECT position, agent, seq, at, conversation, turn, kind, version, body, apart, salt,
                digest, chain, source_incarnation, source_n
         FROM event WHERE agent = ?1 AND seq >= ?2 ORDER BY seq",
        tail,
    )?;
    // Blanked, not deleted: see the schema.
    journal.execute(
        "UPDATE event SET agent = -agent, seq = position, body = NULL, apart = NULL, salt = NULL
         WHERE agent = ?1 AND seq >= ?2",
        tail,
    )?;
    forget_tries(journal, entry)?;
    tracing::warn!(
        agent = %fence.agent, from = damage.from.0, through = damage.through.0,
        reason = %damage.reason, "damaged tail quarantined"
    );
    Ok(note)
}

/// The numbers of incarnations that only the damaged tail recorded will be used again, so their drafts must not block
/// new ones.
fn forget_tries(journal: &Connection, entry: &mut Entry) -> Result<(), Failure> {
    let newest = TryId {
        incarnation: entry.state.incarnation,
        n: i64::MAX as u64,
    };
    let parameters = params![entry.num, newest.incarnation.0 as i64, newest.n as i64];
    if entry.ended > newest {
        entry.ended = newest;
        journal.execute(
            "UPDATE agent SET ended_incarnation = ?2, ended_try = ?3 WHERE num = ?1",
            parameters,
        )?;
    }
    if entry.draft.take_if(|(of, _)| *of > newest).is_some() {
        journal.execute(
            "DELETE FROM draft WHERE agent = ?1 AND (incarnation, try) > (?2, ?3)",
            parameters,
        )?;
    }
    Ok(())
}
