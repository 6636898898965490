//! Background tasks.

use super::AgentRef;
use agentd_core::event::TaskExit;
use agentd_core::id::{ConversationId, TaskId, TurnId};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/tasks`, `GET /v1/agents/{name}/tasks`; `POST /v1/tasks/{id or name}/stop`: those that it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    pub tasks: Vec<Task>,
}

/// A process that a tool left running, until its conversation has been told of its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    /// Whose it is.
    pub agent: AgentRef,
    pub conversation: ConversationId,
    /// The conversation's number.
    pub ordinal: Option<u32>,
    pub turn: Option<TurnId>,
    pub tool: String,
    /// None where the words of the conversation were purged.
    pub command: Option<String>,
    #[serde(with = "super::time")]
    pub started_at: Timestamp,
    pub output_bytes: u64,
    pub state: TaskState,
    pub running: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<TaskExit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    Starting,
    Running,
    Ended,
    /// It is gone, and nobody saw how it ended.
    Unknown,
}

/// `GET /v1/agents/{name}/tasks/{id}/output`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputQuery {
    /// What comes after so many bytes.
    #[serde(default)]
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub text: String,
    /// Where to go on.
    pub next: u64,
    /// All that there is has been shown, and there will be no more.
    pub is_over: bool,
}
