//! Background tasks.

use super::AgentRef;
use agentd_core::event::TaskExit;
use agentd_core::id::{ConversationId, TaskId, TurnId};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/tasks`, `GET /v1/agents/{name}/tasks`; `POST /v1/tasks/{id or name}/stop`: the tasks that it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    pub tasks: Vec<Task>,
}

/// A background task. It is listed until its end is recorded in its conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    /// The agent that started it.
    pub agent: AgentRef,
    pub conversation: ConversationId,
    /// The conversation's number.
    pub ordinal: Option<u32>,
    pub turn: Option<TurnId>,
    pub tool: String,
    /// None if the conversation was purged.
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
    /// It is gone, and how it ended is unknown.
    Unknown,
}

/// `GET /v1/agents/{name}/tasks/{id}/output`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputQuery {
    /// Skip this many bytes.
    #[serde(default)]
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub text: String,
    /// The offset of the next read.
    pub next: u64,
    /// The task has ended, and this is the end of its output.
    pub is_over: bool,
}

/// `GET /v1/agents/{name}/process/log`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLog {
    /// Of the process before the newest one.
    pub previous: String,
    /// Of the newest process.
    pub current: String,
}
