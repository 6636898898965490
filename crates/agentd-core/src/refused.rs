//! Why a change to an agent is refused: a conversation that cannot begin, or an op that was used for another change.

use crate::id::{ConversationId, OpId, Seq};

/// Why a change to an agent is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a turn is in progress; it must end first")]
    TurnUnderWay,
    #[error("the agent has no conversation yet")]
    NoConversation,
    #[error("reset is only for persistent agents")]
    Oneshot,
    #[error("there is nothing to undo")]
    NothingToUndo,
    #[error("there is nothing to redo")]
    NothingToRedo,
    #[error("the content of conversation {0} was purged; no conversation can begin from it")]
    Purged(ConversationId),
    #[error("another reset is in progress: {0}")]
    Resetting(Box<OpId>),
    #[error("the op `{0}` was already used for another change")]
    OtherOp(Box<OpId>),
    #[error("event {0} is not in that conversation")]
    NotThere(Seq),
    #[error("the agent has no conversation {0}")]
    NoSuchConversation(ConversationId),
}
