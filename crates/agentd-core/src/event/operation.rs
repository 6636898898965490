//! A change that a client requested under an op. It is in the same commit as the change, so the change and its record
//! both exist or neither does.

use crate::id::{CommandId, ConversationId, OpId, PromptId, ScheduleId, Seq, TaskId, TurnId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub op: OpId,
    pub verb: OpVerb,
    /// A digest of the request without its text. A repeated op must request the same change.
    pub digest: String,
    #[serde(default, skip_serializing_if = "OpReceipt::is_none")]
    pub receipt: OpReceipt,
}

/// The kind of change. Resets, rewinds and compactions have their own events that contain the op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpVerb {
    Create,
    Start,
    Stop,
    Restart,
    Continue,
    Interrupt,
    Decide,
    Rename,
    SetSpec,
    Checkpoint,
    Fork,
    Archive,
    Restore,
    Purge,
    StopTasks,
    Import,
    EditPrompt,
    MovePrompt,
    RemovePrompts,
    RestoreFiles,
    UndoFiles,
    RunCommand,
    AddSchedule,
    PauseSchedule,
    ResumeSchedule,
    RunSchedule,
    RemoveSchedule,
}

/// What the answer to a repeated request needs besides the agent's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum OpReceipt {
    #[default]
    None,
    /// The first prompt of a new agent.
    Created {
        prompt: PromptId,
    },
    Checkpoint {
        label: String,
        at: Seq,
    },
    /// The turn that was to end, or the prompt if its turn had not begun, and the user's commands that were to end.
    Interrupt {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commands: Vec<CommandId>,
    },
    /// The tasks that were to end.
    Tasks {
        tasks: Vec<TaskId>,
    },
    /// The command that was run.
    Command {
        command: CommandId,
    },
    /// The schedule that was added or changed.
    Schedule {
        schedule: ScheduleId,
    },
    /// The conversations that were to be purged.
    Purge {
        conversations: Vec<ConversationId>,
    },
}

impl OpReceipt {
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}
