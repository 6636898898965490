//! The tree of conversations, and the pointer to the current one.

use super::Position;
use crate::id::{AgentId, ConversationId, OpId, Seq};
use serde::{Deserialize, Serialize};

/// The one primitive: a conversation begins, empty or from a point of another one. The event's own `conversation` is
/// the new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationBegan {
    pub source: BeginSource,
    /// The conversation that was current before, in the same agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ConversationId>,
    /// The prefix that it shares with another conversation. Nothing is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeginSource {
    Create,
    Reset,
    Rewind,
    Fork,
    Import,
}

/// The last event of another conversation that a branch shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    pub agent: AgentId,
    pub conversation: ConversationId,
    pub seq: Seq,
}

/// The event's own conversation accepts no more turns until the pointer returns to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSealed {
    pub reason: SealReason,
    /// The provider's id of the last request, for support requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealReason {
    Reset,
    Rewind,
    Undo,
    Redo,
    Archived,
}

/// Undo or redo: an existing conversation becomes current again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerMoved {
    pub to: ConversationId,
    pub direction: Direction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Undo,
    Redo,
}

/// A label on a position in the event's own conversation: `at`, or the event itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSet {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Seq>,
}

/// The window was compacted. The history stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    pub through: Position,
}
