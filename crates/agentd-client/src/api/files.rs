//! What turns changed in files, and restoring it.

use super::{AgentRef, Env};
use agentd_core::event::ScannedChange;
pub use agentd_core::files::{CannotRestore, NotRestored};
use agentd_core::id::{ConversationId, OpId, TurnId};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/agents/{name}/files/restore`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreFiles {
    /// A branch point: a label, or a turn by its id or by its number among those that the conversation shows.
    pub to: String,
    /// The conversation of the branch point; by default the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// Only these files and directories; relative ones are in the agent's working directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Also restore files that were changed by something else than the agent.
    #[serde(default)]
    pub overwrite: bool,
    /// Change nothing, and report what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// A restore that is requested twice with the same op is made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

/// `POST /v1/agents/{name}/files/undo`: takes the last restore back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoFiles {
    /// Also undo files that were changed since the restore.
    #[serde(default)]
    pub overwrite: bool,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

/// What a restore or its undo did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFiles {
    pub agent: AgentRef,
    pub op: OpId,
    pub outcome: FilesOutcome,
    /// The files that it writes, or that keep it from writing.
    pub files: Vec<RestoredFile>,
    /// What it cannot restore.
    pub not_restored: Vec<NotRestored>,
    /// The command that takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesOutcome {
    Done,
    /// Nothing was written: files were changed by something else, or what they were is not known.
    Conflict,
    /// Some files could not be written, or there was nothing that could be.
    Failed,
    /// Nothing was written: it was a dry run.
    Planned,
    /// Every file already is what it was, as far as that could be checked: `not_restored` has the others.
    Unchanged,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFile {
    pub path: String,
    pub outcome: FileOutcome,
    /// What was done to it, or would be. `None` in a conflict, and if that is no longer known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<FileAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a restore does to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// It gets a content, or the target of a symlink.
    Written,
    /// It did not exist before.
    Removed,
    /// Its content stays.
    Permissions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    Restored,
    /// Something else changed it: it was not written.
    Conflict,
    Failed,
    /// It would be restored.
    Planned,
}

/// `GET /v1/agents/{name}/files`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesQuery {
    /// Only changes after this branch point of the current conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The files that an agent has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFiles {
    pub agent: AgentRef,
    pub files: Vec<ChangedFile>,
    /// Changes whose contents or paths are not known.
    pub unknown: Vec<NotRestored>,
    /// How many restores can be taken back.
    pub undo_levels: usize,
    /// The bytes of earlier contents that are kept, and the limit for them.
    pub kept_bytes: u64,
    pub limit_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: String,
    /// The oldest first.
    pub changes: Vec<FileChanged>,
    /// Why the content before the first of these changes cannot be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_restore: Option<CannotRestore>,
    /// The number of the turn whose change cannot be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_restore_turn: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    pub by: ChangeBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(with = "super::time")]
    pub at: Timestamp,
    /// How a command changed it, compared with the newest commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ScannedChange>,
}

/// What changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeBy {
    Tool,
    Command,
    Restore,
}

/// `POST /v1/agents/{name}/diff`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffFiles {
    /// Only this turn of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Everything after this branch point of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The turns of this conversation; by default of the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Counts without lines.
    #[serde(default)]
    pub stat: bool,
    /// With the changes of subagents.
    #[serde(default)]
    pub tree: bool,
}

/// What an agent changed in files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesDiff {
    pub agent: AgentRef,
    pub files: Vec<FileDiff>,
    /// Changes whose contents or paths are not known.
    pub unknown: Vec<NotRestored>,
    /// Lines of all files.
    pub added: u64,
    pub removed: u64,
    /// The changes of subagents, with `tree`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<FilesDiff>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Absolute.
    pub path: String,
    /// As it is shown: relative to the working directory, if it is in it.
    pub name: String,
    pub by: ChangeBy,
    pub change: DiffChange,
    /// Lines.
    pub added: u64,
    pub removed: u64,
    /// The difference as unified diff. None with `stat`, for a binary or very large file, and if a content is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why there is no diff, or what is not certain about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl FileDiff {
    /// A difference without lines.
    pub const fn new(path: String, name: String, by: ChangeBy, change: DiffChange) -> Self {
        Self {
            path,
            name,
            by,
            change,
            added: 0,
            removed: 0,
            diff: None,
            note: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffChange {
    Created,
    Edited,
    Deleted,
    /// Only its permissions were changed.
    Permissions,
    /// The content is the same: it was changed back.
    Unchanged,
}
