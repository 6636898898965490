//! Pages of events, and the ends of turns.

use super::Cursor;
use agentd_core::event::{Event, Kind};
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::time::Timestamp;

/// Which events of an agent to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadQuery {
    pub agent: AgentId,
    pub after: Seq,
    pub limit: usize,
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    /// Only events that were written at this time or later, and at this time or earlier.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only events of these kinds; if there are none, of all kinds.
    pub kinds: &'static [Kind],
    /// How much is read of each event.
    pub texts: Texts,
}

/// How much is read of the events of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    #[default]
    Whole,
    /// Strings that are stored separately because they are long are left empty.
    WithoutLong,
}

impl ReadQuery {
    pub const fn all(agent: AgentId, after: Seq, limit: usize) -> Self {
        Self {
            agent,
            after,
            limit,
            conversation: None,
            turn: None,
            since: None,
            until: None,
            kinds: &[],
            texts: Texts::Whole,
        }
    }

    /// Whether all events after `after` are read, so that none may be missing.
    pub const fn is_whole(&self) -> bool {
        let is_part = self.conversation.is_some() || self.turn.is_some();
        let is_part = is_part || !self.kinds.is_empty();
        !is_part && self.since.is_none() && self.until.is_none()
    }
}

/// Which of the turns that ended in a conversation, up to some event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnQuery {
    pub agent: AgentId,
    pub conversation: ConversationId,
    pub through: Seq,
    pub which: Turns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// The last n of them.
    Newest(usize),
    /// 0 for the first.
    Nth(usize),
    /// 0 for the last.
    NthLast(usize),
    Id(TurnId),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub events: Vec<Event>,
    /// Where the next page begins; none at the end.
    pub next: Option<Seq>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GlobalPage {
    pub events: Vec<(Cursor, Event)>,
    pub next: Option<Cursor>,
}
