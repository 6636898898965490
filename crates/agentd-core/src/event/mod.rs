//! The events of a journal: a closed, versioned list of what can happen to an agent.
//!
//! **Structural** kinds hold no free text and are kept forever; [`crate::state::AgentState`] folds only these.
//! **Content** kinds hold text; purge may delete their bodies and nothing else. A kind or version that this build
//! does not know is an error and is never skipped.

mod agent;
mod command;
mod content;
mod conversation;
mod files;
mod hook;
mod kinds;
mod mcp;
mod names;
mod not_restored;
mod operation;
mod plan;
mod prompt;
mod reset;
mod schedule;
mod subagent;
mod tool;
mod turn;

pub use agent::*;
pub use command::*;
pub use content::*;
pub use conversation::*;
pub use files::*;
pub use hook::*;
pub use kinds::{Body, Class, DecodeError, Kind};
pub use mcp::*;
pub use not_restored::*;
pub use operation::*;
pub use plan::*;
pub use prompt::*;
pub use reset::*;
pub use schedule::*;
pub use subagent::*;
pub use tool::*;
pub use turn::*;

use crate::id::{AgentId, ConversationId, Seq, TurnId};
use crate::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// One entry of an agent's journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub agent: AgentId,
    pub seq: Seq,
    pub at: Timestamp,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub body: Body,
}

/// An event that is not in the journal yet. The store assigns its `seq`.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub at: Timestamp,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub body: Body,
}

impl NewEvent {
    pub fn placed(self, agent: AgentId, seq: Seq) -> Event {
        Event {
            agent,
            seq,
            at: self.at,
            conversation: self.conversation,
            turn: self.turn,
            body: self.body,
        }
    }
}

/// Assigns sequence numbers to the events of one append, starting at `first`.
pub fn placed(
    events: impl IntoIterator<Item = NewEvent>,
    agent: AgentId,
    first: Seq,
) -> Vec<Event> {
    let events = events.into_iter().zip((first.0..).map(Seq));
    let events = events.map(|(event, seq)| event.placed(agent, seq));
    events.collect()
}

impl Event {
    pub const fn kind(&self) -> Kind {
        self.body.kind()
    }

    pub const fn position(&self) -> Position {
        Position {
            agent: self.agent,
            seq: self.seq,
        }
    }
}

/// A position in some agent's journal. The window of a fork reaches into its parent agent's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub agent: AgentId,
    pub seq: Seq,
}

/// The JSON line that scripts see. It has the same shape for every kind.
#[derive(Serialize, Deserialize)]
struct Line {
    seq: Seq,
    at: Timestamp,
    kind: String,
    v: u32,
    agent: AgentId,
    conversation: ConversationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    /// Absent if the body was purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

/// A line without a position.
#[derive(Serialize, Deserialize)]
struct NewLine {
    at: Timestamp,
    kind: String,
    v: u32,
    conversation: ConversationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    body: Value,
}

impl Serialize for NewEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.body.to_value().map_err(serde::ser::Error::custom)?;
        let gone = || serde::ser::Error::custom("a purged body cannot be serialized");
        NewLine {
            at: self.at,
            kind: self.body.kind().name().to_owned(),
            v: self.body.kind().version(),
            conversation: self.conversation,
            turn: self.turn,
            body: body.ok_or_else(gone)?,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NewEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = NewLine::deserialize(deserializer)?;
        let body = Body::from_value(&line.kind, line.v, line.body).map_err(D::Error::custom)?;
        Ok(Self {
            at: line.at,
            conversation: line.conversation,
            turn: line.turn,
            body,
        })
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Line {
            seq: self.seq,
            at: self.at,
            kind: self.kind().name().to_owned(),
            v: self.kind().version(),
            agent: self.agent,
            conversation: self.conversation,
            turn: self.turn,
            body: self.body.to_value().map_err(serde::ser::Error::custom)?,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::deserialize(deserializer)?;
        let body = match line.body {
            Some(body) => Body::from_value(&line.kind, line.v, body),
            None => Body::purged(&line.kind, line.v),
        }
        .map_err(D::Error::custom)?;
        Ok(Self {
            agent: line.agent,
            seq: line.seq,
            at: line.at,
            conversation: line.conversation,
            turn: line.turn,
            body,
        })
    }
}

#[cfg(test)]
mod tests;
