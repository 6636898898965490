//! Shell commands that the user runs in the sandbox of an agent's tools.

use super::TaskExit;
use crate::id::{BootId, CommandId};
use serde::{Deserialize, Serialize};

/// The command may run now. Its text is in the [`super::CommandLine`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStarted {
    pub command: CommandId,
    pub boot: BootId,
    pub time_limit_ms: u64,
}

/// The command has ended. Its output is in the [`super::CommandOutput`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnded {
    pub command: CommandId,
    #[serde(flatten)]
    pub end: CommandEnd,
    pub duration_ms: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    pub exit: TaskExit,
    /// Why it was ended before it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CommandCut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandCut {
    TimedOut,
    Interrupted,
}

impl CommandEnd {
    /// How it ended, unless it succeeded.
    pub fn trouble(&self) -> Option<String> {
        let how = match self.exit {
            TaskExit::Code { code: 0 } => None,
            TaskExit::Code { code } => Some(format!("exit code {code}")),
            TaskExit::Signal { signal } => Some(format!("signal {signal}")),
            TaskExit::NotStarted => Some("it was not started".to_owned()),
            TaskExit::Unknown => Some("how it ended is unknown".to_owned()),
        };
        let cut = match self.cut {
            None => return how,
            Some(CommandCut::TimedOut) => "timed out",
            Some(CommandCut::Interrupted) => "interrupted",
        };
        Some(match how {
            Some(how) => format!("{cut}: {how}"),
            None => cut.to_owned(),
        })
    }
}

/// The model sees these commands and their output from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandsTaken {
    pub commands: Vec<CommandId>,
}
