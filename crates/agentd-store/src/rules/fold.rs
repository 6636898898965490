//! Folds an agent's stored events to its state, in order, up to its head or to where its journal is damaged.

use crate::chain::{GENESIS, Hash};
use crate::damage::{Damage, Unreadable};
use crate::error::{Error, Result};
use crate::store::Source;
use crate::stored::StoredEvent;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;

/// The agent's state, and what is needed to continue the fold.
#[derive(Clone, Debug)]
pub struct Folded {
    pub state: AgentState,
    pub chain: Hash,
    /// The newest append that had a counter, with its first and last event.
    pub source: Option<(Source, Seq, Seq)>,
    pub damage: Option<Damage>,
}

impl Folded {
    /// The fold before the first event.
    pub fn empty(agent: AgentId) -> Self {
        Self {
            state: AgentState::new(agent),
            chain: GENESIS,
            source: None,
            damage: None,
        }
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

    /// The error if no event was folded, so that there is no state.
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

/// A fold in progress. The backend passes it every stored event of an agent, in the order of their numbers.
pub struct Folding {
    folded: Folded,
    /// The first unusable event. The events after it are counted, and not folded.
    damaged: Option<(Seq, Unreadable)>,
    /// The last event that exists.
    last: Seq,
}

impl Folding {
    /// Starts from an empty fold or from a snapshot.
    pub const fn from(folded: Folded) -> Self {
        let last = folded.state.head;
        Self {
            folded,
            damaged: None,
            last,
        }
    }

    /// The number of the last event that was folded.
    pub const fn head(&self) -> Seq {
        self.folded.state.head
    }

    /// Takes the next stored event and its counter. Returns the event if it was folded. `find` looks up a string that
    /// is stored separately. An error if the backend fails, or if a newer agentd wrote the event.
    pub fn next(
        &mut self,
        stored: StoredEvent,
        source: Option<Source>,
        find: impl FnMut(&Hash) -> Result<Option<String>>,
    ) -> Result<Option<Event>> {
        self.last = stored.seq;
        if self.damaged.is_some() {
            return Ok(None);
        }
        let agent = self.folded.state.id;
        let expected = self.head().next();
        let chain = stored.chain;
        let readable = match stored.check(agent, expected, &self.folded.chain) {
            Ok(()) => stored.decode(agent, find)?,
            Err(reason) => Err(reason),
        };
        match readable {
            Ok(event) => {
                self.folded.apply(&event, chain, source);
                Ok(Some(event))
            }
            // Not damage: a newer agentd wrote it, and this version cannot check it.
            Err(reason) if reason.is_newer() => Err(Error::Damaged {
                agent,
                seq: expected,
                reason,
            }),
            Err(reason) => {
                self.damaged = Some((expected, reason));
                Ok(None)
            }
        }
    }

    /// The backend could not read the next row as an event.
    pub fn next_is_unreadable(&mut self, reason: Unreadable) {
        let expected = self.head().next();
        self.damaged.get_or_insert((expected, reason));
        self.last = self.last.next();
    }

    /// The events from here on cannot be reached; `last` is the last one that exists, as far as is known.
    pub fn cut_off(&mut self, reason: Unreadable, last: Seq) {
        let expected = self.head().next();
        self.damaged.get_or_insert((expected, reason));
        self.last = self.last.max(last);
    }

    pub fn finish(mut self) -> Folded {
        self.folded.damage = self.damaged.map(|(from, reason)| Damage {
            from,
            through: self.last.max(from),
            reason,
        });
        self.folded
    }
}
