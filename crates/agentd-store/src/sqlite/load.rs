//! Loads an agent: a snapshot and the events after it. The cost depends on the window, not on the history.

use super::follower::snapshot::{self, Snapshot};
use super::readers::Databases;
use super::row::{COLUMNS, StoredEvent, existing_agent_num, seq, sql_seq};
use super::window;
use crate::chain::{GENESIS, Hash};
use crate::error::{Error, Result, Unreadable, is_corrupt};
use crate::store::{Damage, Loaded, Source};
use agentd_core::event::{DecodeError, Event};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;
use agentd_core::window::Window;
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
    snapshot: Option<Snapshot>,
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
            Err(reason) if is_newer(&reason) => {
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
    fn emptiness(&self, agent: AgentId) -> Option<Error> {
        if self.state.head != Seq::ZERO {
            return None;
        }
        Some(match &self.damage {
            Some(damage) => damage.error(agent),
            // Claimed, but never written to.
            None => Error::NoSuchAgent { agent },
        })
    }
}

impl Damage {
    pub(super) fn error(&self, agent: AgentId) -> Error {
        Error::Damaged {
            agent,
            seq: self.from,
            reason: self.reason.clone(),
        }
    }
}

pub const fn is_newer(reason: &Unreadable) -> bool {
    matches!(
        reason,
        Unreadable::Undecodable(DecodeError::UnknownKind { .. } | DecodeError::NewerVersion { .. })
    )
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

pub fn agent(databases: &Databases, agent: AgentId) -> Result<Loaded> {
    let journal = &databases.journal;
    // One transaction for all reads.
    let moment = journal.unchecked_transaction()?;
    let num = existing_agent_num(journal, agent)?;
    let (folded, window) = match both(databases, agent, num, Start::Snapshot) {
        // An event that the snapshot includes has changed: fold from the first event to find out how
        // far the journal is intact.
        Err(Error::Damaged { .. }) => both(databases, agent, num, Start::Beginning)?,
        folded => folded?,
    };
    if let Some(error) = folded.emptiness(agent) {
        return Err(error);
    }
    let window = match (window, &folded.damage) {
        (Some(window), _) => window,
        // Its first conversation has not begun.
        (None, None) => Window::new(),
        // Nothing of it can be shown: that must not look like an empty conversation.
        (None, Some(damage)) => return Err(damage.error(agent)),
    };
    // Nothing was written, and a commit would fail after a damaged page.
    drop(moment);
    Ok(Loaded {
        state: folded.state,
        window,
        source: folded.source.map(|(source, _, _)| source),
        damage: folded.damage,
    })
}

/// The first fold for a new owner. Also checks the window, so that the owner learns of damage now and not later.
pub fn checked(databases: &Databases, agent: AgentId, num: i64) -> Result<Folded> {
    match both(databases, agent, num, Start::Snapshot) {
        Err(Error::Damaged { reason, .. }) if !is_newer(&reason) => {
            fold_each(databases, agent, num, Start::Beginning, |_| {})
        }
        folded => Ok(folded?.0),
    }
}

/// Events kept from the first fold for the second.
const TAIL_KEPT: usize = 4096;

/// Both folds; no window if there is no conversation.
fn both(
    databases: &Databases,
    agent: AgentId,
    num: i64,
    start: Start,
) -> Result<(Folded, Option<Window>)> {
    let mut tail = Vec::new();
    let folded = fold_each(databases, agent, num, start, |event| {
        // Few events follow the newest snapshot; a journal without a snapshot is read again below.
        if tail.len() <= TAIL_KEPT {
            tail.push(event.clone());
        }
    })?;
    let Some(current) = folded.state.tree.current() else {
        return Ok((folded, None));
    };
    let window = match &folded.snapshot {
        Some(snapshot) if snapshot.conversation == current && tail.len() <= TAIL_KEPT => {
            let mut window = window::restore(&databases.journal, &snapshot.skeleton)?;
            let own = tail.iter().filter(|event| event.conversation == current);
            own.for_each(|event| window.apply(event));
            window
        }
        _ => window::fold_from(databases, &folded.state, current, folded.state.head, start)?,
    };
    Ok((folded, Some(window)))
}
