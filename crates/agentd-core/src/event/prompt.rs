//! The inbox: prompts are accepted, edited, moved, removed, taken into a turn, or set aside.

use crate::id::{BindingId, PromptId};
use serde::{Deserialize, Serialize};

/// A prompt was accepted. Its text is in the [`super::Prompt`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptQueued {
    pub prompt: PromptId,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub mode: PromptMode,
}

/// Who is told how the turn of a prompt ends. In the append that accepts the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptRouted {
    pub prompt: PromptId,
    /// The sender wants a notification, whatever the settings say about notifications.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// The binding that the prompt came from, and that its answer goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingId>,
}

/// What a prompt does to a running turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    /// Waits for the turn to end.
    #[default]
    Queue,
    /// Joins the turn at its next boundary.
    Steer,
    /// Interrupts the turn and is answered next.
    Interrupt,
}

/// From here on the model sees these prompts, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsTaken {
    pub prompts: Vec<PromptId>,
}

/// The prompts were set aside when the event's conversation was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsSetAside {
    pub prompts: Vec<PromptId>,
}

/// An undo returned to the prompts' conversation, and they are queued again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsRequeued {
    pub prompts: Vec<PromptId>,
}

/// The user changed the text of a queued prompt. The new text is in the [`super::Prompt`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptEdited {
    pub prompt: PromptId,
}

/// The user moved a queued prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptMoved {
    pub prompt: PromptId,
    /// The queued prompt that it is answered before; none if it is answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PromptId>,
}

/// The user removed queued prompts. The model never sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptsRemoved {
    pub prompts: Vec<PromptId>,
}
