//! What is asked of the streams of events, and what comes on them.

use agentd_core::event::Event;
use agentd_core::id::{ConversationId, TurnId};
use serde::{Deserialize, Serialize};

/// `GET /v1/agents/{name}/events`. With `follow`, as server-sent events that do not end; each has its
/// `seq` as its id, and what streams comes as `delta`s without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventQuery {
    #[serde(default)]
    pub after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Before where the log was cleared, too.
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub follow: bool,
}

/// One thing on a stream of events. Besides these a stream has its end: `end`, or `problem` with an RFC 9457
/// problem. One that ends without either was cut off.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Event(Box<Event>),
    /// What a reply has grown by; it is on disk, and becomes part of a message.
    Delta(Delta),
    /// Everything that there was at the beginning has come; from here on it is live.
    CaughtUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub request: String,
    pub text: String,
}

/// `GET /v1/events`: all agents', in the order of their commits; ids are cursors into that. Without `follow`
/// the stream ends where the journal does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllEventsQuery {
    #[serde(default)]
    pub after: u64,
    #[serde(default)]
    pub follow: bool,
}
