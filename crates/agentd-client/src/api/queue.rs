//! The prompts that wait for an agent.

use super::{AgentRef, AttachmentInfo, time};
use agentd_core::event::PromptMode;
use agentd_core::id::PromptId;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/agents/{name}/queue`, and the answer to each change of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub agent: AgentRef,
    /// In the order in which turns take them. A prompt whose mode is `steer` joins a running turn before the others.
    pub prompts: Vec<QueuedPrompt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedPrompt {
    pub prompt: PromptId,
    /// Its place in the queue, from 1.
    pub position: usize,
    pub mode: PromptMode,
    /// When it was accepted.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// How often its text was changed.
    pub edits: u32,
    pub text: String,
    /// The files that are attached to it. An edit of the text keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentInfo>,
}

/// `POST /v1/agents/{name}/queue/edit`: another text for a queued prompt. Its id, its key, its place and its
/// attachments stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditPrompt {
    /// The id of the prompt, or its beginning.
    pub prompt: String,
    pub text: String,
    /// The `edits` of the prompt that the user saw. The edit is refused if the prompt was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<u32>,
}

/// `POST /v1/agents/{name}/queue/move`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovePrompt {
    /// The id of the prompt, or its beginning.
    pub prompt: String,
    /// Answer it next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    /// The queued prompt that it is answered before. Without this and `first`, it is answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// `POST /v1/agents/{name}/queue/remove`: all of them, or none if one is not queued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovePrompts {
    /// The ids of the prompts, or their beginnings.
    pub prompts: Vec<String>,
}
