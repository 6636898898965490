//! Folds an agent's journal: the state up to its head, or to where it is damaged.

use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent, existing_agent_num, seq, sql_seq};
use super::snapshot::{self, Snapshot};
use super::sql_error::is_corrupt;
use crate::chain::{GENESIS, Hash};
use crate::damage::{Damage, Unreadable};
use crate::error::{Error, Result};
use crate::store::Source;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use rusqlite::{Connection, params};

/// Where a fold begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the newest snapshot, if there is one.
    Snapshot,
    /// At the first event; every event is checked.
    Beginning,
}

/// The first fold, and what is needed to continue it.
pub struct Folded {
    pub state: AgentState,
    pub chain: Hash,
    /// The newest append that had a counter, and where it is.
    pub source: Option<(Source, Seq, Seq)>,
    pub damage: Option<Damage>,
    /// The snapshot it started from.
    pub snapshot: Option<Snapshot>,
}

/// Folds an agent's journal up to its head, or to where it is damaged.
pub fn fold(databases: &Databases, agent: AgentId, num: i64) -> Result<Folded> {
    fold_each(databases, agent, num, Start::Snapshot, |_| {})
}

/// The same, and passes each event after the snapshot to `also`.
pub fn fold_each(
    databases: &Databases,
    agent: AgentId,
    num: i64,
    start: Start,
    mut also: impl FnMut(&Event),
) -> Result<Folded> {
    let mut folded = Folded::start(databases, agent, num, start)?;
    let journal = &databases.journal;
    let sql = format!("SELECT {COLUMNS} FROM event WHERE agent = ?1 AND seq > ?2 ORDER BY seq");
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, sql_seq(folded.state.head)])?;
    let mut damaged: Option<(Seq, Unreadable)> = None;
    let mut last = folded.state.head;
    loop {
        let expected = folded.state.head.next();
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // Events after a damaged page cannot be reached from here.
            Err(error) if is_corrupt(&error) => {
                damaged.get_or_insert((expected, Unreadable::Page));
                last = last.max(last_seq(journal, num));
                break;
            }
            Err(error) => return Err(error.into()),
        };
        let stored = match StoredEvent::read(row)? {
            Ok(stored) => stored,
            Err(reason) => {
                damaged.get_or_insert((expected, reason));
                last = last.next();
                continue;
            }
        };
        last = stored.seq;
        if damaged.is_some() {
            continue;
        }
        let (chain, source) = (stored.chain, stored.source);
        let readable = match stored.check(agent, expected, &folded.chain) {
            Ok(()) => stored.try_decode(journal, agent)?,
            Err(reason) => Err(reason),
        };
        match readable {
            Ok(event) => {
                folded.apply(&event, chain, source);
                also(&event);
            }
            // Not damage: a newer agentd wrote it, and this version cannot check it.
            Err(reason) if reason.is_newer() => {
                return Err(Error::Damaged {
                    agent,
                    seq: expected,
                    reason,
                });
            }
            Err(reason) => damaged = Some((expected, reason)),
        }
    }
    folded.damage = damaged.map(|(from, reason)| Damage {
        from,
        through: last.max(from),
        reason,
    });
    Ok(folded)
}

/// The last event of an agent, from the index alone.
fn last_seq(journal: &Connection, num: i64) -> Seq {
    let last: rusqlite::Result<Option<i64>> = journal.query_row(
        "SELECT max(seq) FROM event WHERE agent = ?1",
        [num],
        |row| row.get(0),
    );
    last.ok().flatten().map_or(Seq::ZERO, seq)
}

impl Folded {
    fn start(databases: &Databases, agent: AgentId, num: i64, start: Start) -> Result<Self> {
        let snapshot = match start {
            Start::Snapshot => snapshot::newest(databases, agent, num)?,
            Start::Beginning => None,
        };
        let known = snapshot.as_ref();
        Ok(Self {
            state: known.map_or_else(|| AgentState::new(agent), |known| known.state.clone()),
            chain: known.map_or(GENESIS, |known| known.chain),
            source: known.and_then(|known| known.source),
            damage: None,
            snapshot,
        })
    }

    fn apply(&mut self, event: &Event, chain: Hash, source: Option<Source>) {
        self.state.apply(event);
        self.chain = chain;
        // The events of one append are consecutive.
        if let Some(source) = source {
            let first = match self.source {
                Some((known, first, _)) if known == source => first,
                _ => event.seq,
            };
            self.source = Some((source, first, event.seq));
        }
    }

    /// Why there is no state, if there is not even a first event.
    pub fn emptiness(&self, agent: AgentId) -> Option<Error> {
        if self.state.head != Seq::ZERO {
            return None;
        }
        Some(match &self.damage {
            Some(damage) => Error::of_damage(agent, damage),
            // Claimed, but never written to.
            None => Error::NoSuchAgent { agent },
        })
    }
}

/// The first fold alone, and the damage of the journal.
pub fn state(databases: &Databases, agent: AgentId) -> Result<(AgentState, Option<Damage>)> {
    let num = existing_agent_num(&databases.journal, agent)?;
    let folded = fold(databases, agent, num)?;
    match folded.emptiness(agent) {
        Some(error) => Err(error),
        None => Ok((folded.state, folded.damage)),
    }
}
