//! Tools, the processes that they start, and the approvals that they request.

use super::files::is_zero;
use crate::id::{ApprovalId, BootId, CallId, TaskId};
use crate::message::CallOutcome;
use serde::{Deserialize, Serialize};

/// The tool may run now. Its arguments are in the message that called it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    pub call: CallId,
    pub tool: String,
    /// The process, if the tool runs as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// The content before and after an atomic file replacement, so that recovery can tell whether it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
    /// The same for a patch, for each path that it names, in the order of the patch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patched: Vec<PatchedFile>,
    /// It may change files like a command: they are looked for after the turn. A tool of an MCP server, unless the user
    /// has marked it as read-only. Since version 3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_change_files: bool,
}

/// A file that a patch changes: hashes of its content in hex; `None` if there is no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchedFile {
    /// As in [`FileChange`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// As in [`FileChange`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_bytes: u64,
    /// As in [`FileChange`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_private: bool,
}

impl ToolStarted {
    /// The start of a call that runs as no process and replaces no file.
    pub const fn new(call: CallId, tool: String) -> Self {
        Self {
            call,
            tool,
            task: None,
            boot: None,
            change: None,
            patched: Vec::new(),
            may_change_files: false,
        }
    }

    /// Whether what it changes is found only by a scan after the turn.
    pub const fn is_scanned(&self) -> bool {
        self.task.is_some() || self.may_change_files
    }

    /// How much of what its commit keeps counts towards `limits.file_history_bytes`.
    pub fn kept_bytes(&self) -> u64 {
        let change = self.change.iter().map(|change| change.kept_bytes);
        let patched = self.patched.iter().map(|file| file.kept_bytes);
        change.chain(patched).fold(0, u64::saturating_add)
    }
}

/// Hashes of a file's content in hex; `None` if there is no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file, as [`FileSeen::file_of`] names it: what is known of its path after `file_kept` was purged. Version 1 does not
    /// have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub after: String,
    /// What counts towards `limits.file_history_bytes`: the sum of [`super::FileKept::counted_bytes`] of the same commit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_bytes: u64,
    /// No other process finds the file at its path: it is in the `/tmp` of the agent's tools, and is none of the user's files.
    /// Since version 4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_private: bool,
}

/// The call has ended. Its output is in the [`super::ResultAdded`] of the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnded {
    pub call: CallId,
    pub outcome: CallOutcome,
    /// The files whose content the model knows after this call: it has read or written them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<FileSeen>,
}

impl ToolEnded {
    /// The end of a call that showed the model no file.
    pub const fn new(call: CallId, outcome: CallOutcome) -> Self {
        Self {
            call,
            outcome,
            seen: Vec::new(),
        }
    }

    /// Whether the call failed before it wrote a file. A patch that failed after it only deleted files looks the same.
    pub fn has_failed_early(&self) -> bool {
        self.outcome == CallOutcome::Error && self.seen.is_empty()
    }
}

/// A file and its content, as hashes in hex: a purge must leave neither a path nor a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSeen {
    /// Of the path, with links resolved.
    pub file: String,
    pub content: String,
}

impl FileSeen {
    /// How the journal names a file. Half of the hash identifies it.
    pub fn file_of(path: &[u8]) -> String {
        let mut file = crate::digest::sha256(path);
        file.truncate(32);
        file
    }
}

/// A process that continues after its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    pub task: TaskId,
    pub call: CallId,
    pub tool: String,
    pub boot: BootId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnded {
    pub task: TaskId,
    pub exit: TaskExit,
    /// The daemon ended it. Otherwise it exited by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
}

impl TaskEnded {
    /// The end of a task that exited by itself.
    pub const fn by_itself(task: TaskId, exit: TaskExit) -> Self {
        Self {
            task,
            exit,
            killed: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum TaskExit {
    Code {
        code: i32,
    },
    Signal {
        signal: i32,
    },
    /// It could not be started, or was stopped before it was.
    NotStarted,
    /// It no longer exists, and how it ended was not recorded.
    Unknown,
}

impl TaskExit {
    /// The exit as observed. Every program that started has a code or a signal.
    pub const fn seen(code: Option<i32>, signal: Option<i32>) -> Self {
        match (code, signal) {
            (Some(code), _) => Self::Code { code },
            (None, Some(signal)) => Self::Signal { signal },
            (None, None) => Self::NotStarted,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub approval: ApprovalId,
    pub call: CallId,
    /// Why approval is needed. Never the model's own text, which is in the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Asks::is_approval")]
    pub asks: Asks,
}

/// What the user is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Whether the call may start.
    #[default]
    Approval,
    /// The call runs, and its MCP server has a question: the event before is a `question_asked`.
    Input,
}

impl Asks {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_approval(&self) -> bool {
        *self == Self::Approval
    }
}

impl ApprovalRequested {
    pub const fn new(approval: ApprovalId, call: CallId) -> Self {
        Self {
            approval,
            call,
            why: None,
            asks: Asks::Approval,
        }
    }
}

/// The first answer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    pub approval: ApprovalId,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweredBy>,
}

impl ApprovalAnswered {
    pub const fn new(approval: ApprovalId, decision: Decision) -> Self {
        Self {
            approval,
            decision,
            by: None,
        }
    }
}

/// Who answered an approval, as the daemon identified the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredBy {
    /// The kind of caller: `user` or `hook`.
    pub caller: String,
    pub uid: u32,
    /// The client program, as it identifies itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalWithdrawn {
    pub approval: ApprovalId,
}
