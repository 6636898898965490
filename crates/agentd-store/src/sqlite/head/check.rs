//! Compares a journal with its head.

use super::{Found, Tip};
use crate::damage::{Damage, Missing, Unreadable};
use crate::error::{Disk, Error, Result};
use crate::sqlite::row::{IdParam, seq};
use crate::sqlite::{Options, connect};
use agentd_core::id::{AgentId, Seq};
use rusqlite::{Connection, OptionalExtension as _, params};

/// The journal's last event.
pub struct Last {
    pub position: u64,
    /// None if its agent cannot be determined.
    pub tip: Option<Tip>,
}

pub fn last_event(journal: &Connection) -> Result<Option<Last>> {
    // A process that died while creating the file may have left one without tables.
    if !journal.table_exists(None, "event")? {
        return Ok(None);
    }
    let found = journal
        .prepare_cached(
            "SELECT event.position, agent.id, event.seq, event.chain
             FROM event LEFT JOIN agent ON agent.num = event.agent
             WHERE event.position = (SELECT max(position) FROM event)",
        )?
        .query_row([], |row| {
            let position = row.get::<_, i64>(0)?.unsigned_abs();
            let agent: Option<[u8; 16]> = row.get(1).unwrap_or_default();
            let chain: Option<[u8; 32]> = row.get(3).ok();
            let seq = row.get(2).map_or(Seq::ZERO, seq);
            let tip = agent.zip(chain).map(|(agent, chain)| Tip {
                agent: AgentId::from_bytes(agent),
                seq,
                position,
                chain,
            });
            Ok(Last { position, tip })
        })
        .optional()?;
    Ok(found)
}

/// Compares the journal with its head before anything is written to it. A journal that has lost events is left
/// unchanged, so that a log that was moved away can still be put back. Returns its last event.
pub fn check(options: &Options, head: &Found) -> Result<Option<Tip>> {
    check_beginning(options, head)?;
    if !options.journal().exists() {
        return Ok(None);
    }
    let journal = connect::reader(options, &options.journal())?;
    connect::leave_log(&journal)?;
    let last = match last_event(&journal) {
        // Pages are damaged: later, only the agents on these pages are refused.
        Err(Error::Unavailable(Disk::Corrupt(error))) => {
            tracing::error!(%error, "cannot read the journal's last event");
            return Ok(None);
        }
        last => last?,
    };
    let position = last.as_ref().map_or(0, |last| last.position);
    match behind(&journal, head, position) {
        Some(missing) => {
            return Err(Error::Behind {
                missing,
                restore: "the missing journal.db-wal or journal.db",
            });
        }
        None if position == 0 => check_nothing_lost(options, head)?,
        None => {}
    }
    Ok(last.and_then(|last| last.tip))
}

/// An error if a journal existed and is now missing: a new one must not be created in its place.
pub fn check_beginning(options: &Options, head: &Found) -> Result<()> {
    let size = std::fs::metadata(options.journal()).map(|file| file.len());
    match size {
        Ok(size) if size > 0 => return Ok(()),
        _ => check_nothing_lost(options, head)?,
    }
    // SQLite would delete a log without its file, so this is an error even if the head names no event.
    match std::fs::metadata(options.journal_log()) {
        Ok(log) if log.len() > 0 => Err(no_journal(
            options,
            "its write-ahead log still exists".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// For a journal without events: an error if the head or a directory shows that there were agents.
fn check_nothing_lost(options: &Options, head: &Found) -> Result<()> {
    if let Some(tip) = head.tips().first() {
        let (seq, agent) = (tip.seq, tip.agent);
        let why = format!("its head lists event {seq} of agent {agent}");
        return Err(no_journal(options, why));
    }
    // A head without an event means that the journal began empty.
    if matches!(head, Found::Whole(_)) {
        return Ok(());
    }
    match options.agents_beside().min() {
        Some(first) => Err(no_journal(
            options,
            format!("the directory of agent {first} still exists"),
        )),
        None => Ok(()),
    }
}

fn no_journal(options: &Options, why: String) -> Error {
    Error::NoJournal {
        location: options.dir.display().to_string(),
        why,
        restore: "journal.db",
    }
}

/// The acknowledged events that the journal has lost, if it ends before its head.
pub fn behind(journal: &Connection, head: &Found, position: u64) -> Option<Missing> {
    let tips = head.tips();
    let lost: Vec<&Tip> = tips.iter().filter(|tip| tip.position > position).collect();
    if lost.is_empty() {
        return None;
    }
    let agents = lost.iter().map(|tip| {
        let has = last_seq(journal, tip.agent).unwrap_or(Seq::ZERO);
        let damage = Damage {
            from: has.next().min(tip.seq),
            through: tip.seq,
            reason: Unreadable::Missing,
        };
        (tip.agent, damage)
    });
    Some(Missing {
        agents: agents.collect(),
        and_maybe_more: lost.len() == super::TIPS,
    })
}

/// The last event of an agent in the journal.
fn last_seq(journal: &Connection, agent: AgentId) -> Option<Seq> {
    let found: rusqlite::Result<Option<i64>> = journal.query_row(
        "SELECT max(seq) FROM event WHERE agent = (SELECT num FROM agent WHERE id = ?1)",
        [IdParam(agent.as_bytes())],
        |row| row.get(0),
    );
    found.ok().flatten().map(seq)
}

/// Whether an acknowledged event is no longer at its position. A quarantined event counts as unchanged.
pub fn is_changed(journal: &Connection, tip: &Tip) -> Result<bool> {
    let found: Option<(i64, Option<[u8; 32]>)> = journal
        .prepare_cached("SELECT agent, chain FROM event WHERE position = ?1")?
        .query_row(params![tip.position as i64], |row| {
            Ok((row.get(0)?, row.get(1).ok()))
        })
        .optional()?;
    Ok(match found {
        Some((agent, _)) if agent < 0 => false,
        Some((_, chain)) => chain != Some(tip.chain),
        None => true,
    })
}
