//! The order of events of several journals: those that a fork shares come before its own.

use super::change::Order;
use crate::event::Position;
use crate::id::{AgentId, Seq};

/// The journals that were read before the one that is read now.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    journals: Vec<Shared>,
    /// The order of the last event that counts from them.
    last: u64,
}

#[derive(Clone, Debug)]
struct Shared {
    agent: AgentId,
    /// The order before its first event.
    base: u64,
    /// The last event that the fork shares.
    through: Seq,
}

impl Inherited {
    /// The order of an event of the journal that is read now.
    pub const fn own(&self, seq: Seq) -> Order {
        Order(self.last.saturating_add(seq.0))
    }

    /// The order of an event of any of the journals. What follows the branch point has none.
    pub fn order(&self, at: Position) -> Option<Order> {
        let mut journals = self.journals.iter();
        match journals.find(|journal| journal.agent == at.agent) {
            Some(journal) if at.seq <= journal.through => {
                Some(Order(journal.base.saturating_add(at.seq.0)))
            }
            Some(_) => None,
            None => Some(self.own(at.seq)),
        }
    }

    /// The journal that was read is another agent's, of which the events up to `through` are shared.
    pub fn end(&mut self, agent: AgentId, through: Seq) {
        let last = self.own(through);
        self.journals.push(Shared {
            agent,
            base: self.last,
            through,
        });
        self.last = last.0;
    }
}
