//! Queries of event streams, and the items of a stream.

use super::time;
use agentd_core::event::Event;
use agentd_core::id::{ConversationId, TurnId};
use agentd_core::mcp::CallProgress;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/agents/{name}/events`. With `follow`, as server-sent events that do not end; each has its `seq` as its id.
/// The text and the thinking of a streaming reply come as `delta`s without an id, and what a running call reports as
/// `progress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventQuery {
    #[serde(default)]
    pub after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Only events that were written at this time or later.
    #[serde(
        default,
        with = "time::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub since: Option<Timestamp>,
    /// Only events that were written at this time or earlier.
    #[serde(
        default,
        with = "time::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub until: Option<Timestamp>,
    /// Include the events before the log was cleared.
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub follow: bool,
}

/// One item of an event stream. A stream also has an end: `end`, or `problem` with an RFC 9457 problem. A stream that
/// ends without either was cut off.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Event(Box<Event>),
    /// A new piece of a reply. It is on disk and becomes part of a message.
    Delta(Delta),
    /// How far a running call of an MCP server is. It is for display only, and is not kept.
    Progress(CallProgress),
    /// All events that existed at the beginning have been sent; from here on the stream is live.
    CaughtUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub request: String,
    /// New text of the answer; empty if the piece is thinking.
    pub text: String,
    /// New text of the model's thinking.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thinking: String,
}

/// `GET /v1/events`: the events of all agents, in the order of their commits, with cursors as ids. Without `follow` the
/// stream ends with the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllEventsQuery {
    /// The id of an event of an earlier stream. Empty for all events. What it means belongs to the daemon.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    #[serde(default)]
    pub follow: bool,
}
