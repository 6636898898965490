//! A prompt, and what became of it.

use super::{AgentRef, Env, NewAttachment, Usage};
use agentd_core::event::{FailureClass, PromptMode, TurnStatus};
use agentd_core::id::{ConversationId, OpId, PromptId, Seq, TurnId};
use agentd_core::state::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/agents/{name}/prompts`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// A prompt that is sent twice with the same key is accepted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub mode: PromptMode,
    /// The user is notified when its turn ends or needs them, whatever the settings say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub agent: AgentRef,
    pub prompt: PromptId,
    /// The agent's phase when the prompt was accepted. A stopped agent answers after it is started.
    pub phase: Phase,
    /// It had been accepted with this key before.
    pub repeated: bool,
    /// The event that accepted it. All events about the prompt come after it.
    pub seq: Seq,
}

/// `GET /v1/agents/{name}/prompts/{prompt}`; with `?wait_ms=` it waits until the prompt has ended, at most that long.
/// What `agentd send --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub agent: AgentRef,
    pub prompt: PromptId,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub status: Status,
    pub text: String,
    pub usage: Usage,
    pub error: Option<String>,
    /// What went wrong with the request that ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// The reset that set it aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
}

/// The status of a prompt; those after `Waiting` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    /// The turn waits for the user; `error` has the reason.
    Waiting,
    Completed,
    Interrupted,
    Failed,
    Limited,
    Lost,
    SetAside,
    /// The user removed it from the queue.
    Removed,
}

impl Status {
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

impl From<TurnStatus> for Status {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Interrupted => Self::Interrupted,
            TurnStatus::Failed => Self::Failed,
            TurnStatus::Limited => Self::Limited,
            TurnStatus::Lost => Self::Lost,
        }
    }
}
