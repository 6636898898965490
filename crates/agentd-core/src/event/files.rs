//! The history of files: what a file was before a tool or a restore changed it, what commands changed, and restores.
//!
//! See docs/design/025-file-history.md.

use super::{NotRestored, Position};
use crate::id::{AgentId, CallId, OpId, Seq, TurnId};
use serde::{Deserialize, Serialize};

/// A content of more bytes is kept in several events of one commit.
pub const KEPT_PART_BYTES: usize = 8 * 1024 * 1024;
/// A file of more bytes is not kept, whatever the limit of the agent is.
pub const MAX_KEPT_BYTES: u64 = 128 * 1024 * 1024;
/// What one call keeps has at most so many bytes as JSON. It is one append, and a frame of the link has room for it.
pub const MAX_CALL_BYTES: u64 = 160 * 1024 * 1024;

/// What a file was before it was changed. It is in the commit that permits the change, before the event that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileKept {
    pub by: KeptBy,
    /// Absolute, with links resolved.
    pub path: String,
    pub before: FileBefore,
    /// From 0. The parts of one file follow each other in one commit, and only their contents differ.
    pub part: u32,
    pub parts: u32,
}

impl FileKept {
    /// The events that keep what was at a path: one for each part of its content.
    pub fn in_parts(by: &KeptBy, path: &str, befores: Vec<FileBefore>) -> Vec<Self> {
        let parts = u32::try_from(befores.len()).unwrap_or(u32::MAX);
        let kept = (0..).zip(befores).map(|(part, before)| Self {
            by: by.clone(),
            path: path.to_owned(),
            before,
            part,
            parts,
        });
        kept.collect()
    }

    /// How many bytes of `limits.file_history_bytes` it uses. The first part counts for all parts of its file.
    pub fn counted_bytes(&self) -> u64 {
        match &self.before {
            FileBefore::File { size, content, .. }
                if self.part == 0 && !matches!(content, KeptContent::NotKept { .. }) =>
            {
                *size
            }
            _ => 0,
        }
    }

    /// Whether the content of the file, or its absence, is in the journal.
    pub const fn is_restorable(&self) -> bool {
        !matches!(
            &self.before,
            FileBefore::File {
                content: KeptContent::NotKept { .. },
                ..
            }
        )
    }
}

/// What changed the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum KeptBy {
    Call { call: CallId },
    Restore { op: OpId },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FileBefore {
    Absent,
    File {
        /// The permission bits.
        mode: u32,
        /// Of the whole file, in bytes.
        size: u64,
        /// Of the whole file: SHA-256 in hex.
        hash: String,
        content: KeptContent,
    },
    Symlink {
        target: String,
    },
}

/// The content of one part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum KeptContent {
    /// UTF-8 whose only control characters are tabs and line ends.
    Text {
        text: String,
    },
    Base64 {
        base64: String,
    },
    NotKept {
        why: NotKept,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotKept {
    TooLarge,
    Unreadable,
    /// It contains a secret of the agent, such as the key of its provider. No event contains one.
    Secret,
}

/// Which files the commands of a turn changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesScanned {
    pub turn: TurnId,
    pub found: Scan,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Scan {
    Known {
        files: Vec<ScannedFile>,
        /// How many more there are that are not listed: too many, or names that are not UTF-8.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
    },
    Unknown {
        why: ScanProblem,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanProblem {
    /// There is no git, or no repository.
    NoGit,
    Timeout,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScannedFile {
    /// Absolute, with links resolved.
    pub path: String,
    pub change: ScannedChange,
    /// The content that the newest commit has for this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Oid>,
    /// The content that the index has for this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Oid>,
    /// Of the index, or of the commit if the index does not have the path, or the file was clean: as git writes it, type
    /// bits included. 0 if neither has it.
    #[serde(default, skip_serializing_if = "is_zero_mode")]
    pub mode: u32,
    /// The content after the turn: SHA-256 in hex, of a symlink that of its target. `None` if there is no file, or it was
    /// not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// It is a symlink after the turn. Version 1 does not have it, and has no hash for symlinks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link: bool,
    /// The permission bits that a tool had left, or an earlier command, if the content is still the same and only they
    /// were changed. Since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    /// It may not be a change of a command. A deletion: which files were missing before the turn is not known. Since
    /// version 5 also a change while only background commands ran, which the user may have made. Since version 4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// How the file compared with git before the first command of the turn. `None` if that is not known, or the newest
    /// commit does not have the file. Since version 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_before: Option<GitBefore>,
}

/// A tracked file, compared with git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitBefore {
    /// It was as in the newest commit, which is still the newest one.
    Clean,
    /// It had changes that were not committed.
    Changed,
}

/// The difference to the newest commit; for a path that git does not list, to what a tool had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScannedChange {
    Added,
    Modified,
    Deleted,
    TypeChanged,
}

/// The name of an object of git, in hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not the name of an object of git.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a git object: 40 or 64 lowercase hexadecimal digits are expected")]
pub struct NotAnOid;

impl TryFrom<String> for Oid {
    type Error = NotAnOid;

    fn try_from(text: String) -> Result<Self, NotAnOid> {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.len() {
            40 | 64 if text.as_bytes().iter().all(is_hex) => Ok(Self(text)),
            _ => Err(NotAnOid),
        }
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

/// What a restore writes. In the commit of [`FilesRestoreBegan`], followed by a [`FileKept`] of every path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesPlan {
    pub op: OpId,
    pub files: Vec<PlannedFile>,
    /// What is left as it is: a repeated request gets the same answer. `None` in older plans, and if the list is too large
    /// for an event. Since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_restored: Option<Vec<NotRestored>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    pub path: String,
    pub target: RestoreTarget,
    /// What the path was when the plan was made.
    pub expected: FileState,
}

/// The state that a path gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RestoreTarget {
    /// That of a [`FileKept`]: the position of its first part. In a fork, it may be in the journal of another agent.
    Kept {
        at: Position,
        /// The state itself, which is known after the kept content was purged. `None` in older plans.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<FileState>,
    },
    /// An object of the repository; `mode` as git writes it, type bits included.
    Git {
        oid: Oid,
        mode: u32,
        /// Of the content in a work tree: SHA-256 in hex.
        hash: String,
    },
    /// These permission bits; the content stays, and has this hash. Since version 2.
    Mode { mode: u32, hash: String },
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FileState {
    Absent,
    File {
        /// The permission bits.
        mode: u32,
        /// SHA-256 in hex.
        hash: String,
    },
    Symlink {
        target: String,
    },
}

/// What a restore did to each path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestored {
    pub op: OpId,
    pub files: Vec<RestoredFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFile {
    pub path: String,
    pub outcome: RestoredOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RestoredOutcome {
    Restored,
    /// It was changed between the plan and the write, and was not written.
    Conflict,
    Failed {
        why: String,
    },
}

/// A restore of files begins: from here on it is completed after any crash. No turn begins before it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestoreBegan {
    pub op: OpId,
    /// The restore that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<OpId>,
    /// The branch point whose files are restored; `None` for an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Seq>,
    /// The agent whose journal has that position, if the agent was forked from it. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_in: Option<AgentId>,
    pub files: u64,
    /// Of the [`FileKept`] events of the same commit: the sum of [`FileKept::counted_bytes`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestoreEnded {
    pub op: OpId,
    pub outcome: RestoreOutcome,
    pub restored: u64,
    pub failed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    Done,
    /// Nothing was written.
    Conflict,
    /// Some files could not be written.
    Failed,
}

/// Old contents of files were deleted because of `limits.file_history_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesPurged {
    /// Every [`FileKept`] up to here has lost its body.
    pub through: Seq,
    /// How many bytes fewer count towards the limit.
    pub bytes: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero_mode(mode: &u32) -> bool {
    *mode == 0
}
