//! The inbox: prompts are accepted, taken into a turn, or set aside.

use crate::id::PromptId;
use serde::{Deserialize, Serialize};

/// A prompt was accepted. Its words are in the [`super::Prompt`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptQueued {
    pub prompt: PromptId,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub mode: PromptMode,
}

/// What a prompt does to a turn that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    /// Waits for the turn to end.
    #[default]
    Queue,
    /// Joins the turn at its next boundary.
    Steer,
    /// Ends the turn and is answered next.
    Interrupt,
}

/// From here on the model sees them, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsTaken {
    pub prompts: Vec<PromptId>,
}

/// Sealed with the event's conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsSetAside {
    pub prompts: Vec<PromptId>,
}

/// Undo brought their conversation back, and them with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsRequeued {
    pub prompts: Vec<PromptId>,
}
