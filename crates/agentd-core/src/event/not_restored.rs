//! What a restore of files leaves as it is, and why.

use super::{NotKept, ScanProblem};
use crate::id::TurnId;
use serde::{Deserialize, Serialize};

/// A list that may be larger as JSON is not recorded: the event also has the plan.
const MAX_RECORDED_BYTES: usize = 8 * 1024 * 1024;
/// What an entry needs at most beside its path.
const ENTRY_BYTES: usize = 192;
/// What a byte of a path needs at most, as an escape.
const ESCAPED_BYTES: usize = 6;

/// Something that a restore leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRestored {
    /// `None` if the path is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The turn that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The number of that turn in its conversation; `None` if it is a turn of another agent, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_number: Option<usize>,
    pub why: CannotRestore,
}

impl NotRestored {
    pub const fn new(path: Option<String>, turn: Option<TurnId>, why: CannotRestore) -> Self {
        Self {
            path,
            turn,
            turn_number: None,
            why,
        }
    }

    /// The list as it is recorded with its restore; `None` if it may be too large for that.
    pub fn recorded(list: Vec<Self>) -> Option<Vec<Self>> {
        let bytes = list.iter().map(|it| {
            let path = it.path.as_ref().map_or(0, String::len);
            path.saturating_mul(ESCAPED_BYTES)
                .saturating_add(ENTRY_BYTES)
        });
        let bytes = bytes.fold(0, usize::saturating_add);
        (bytes <= MAX_RECORDED_BYTES).then_some(list)
    }

    /// Whether it is a file that was to be restored, and was not. Without a path, it is not known whether there is one.
    pub fn is_left(&self) -> bool {
        self.path.is_some() && self.why != CannotRestore::NotChecked
    }
}

/// Why a path cannot be restored. It is a part of [`FilesPlan`](super::FilesPlan): a new reason is a new version of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CannotRestore {
    /// The file was larger than what is kept.
    TooLarge,
    /// The file could not be read before it was changed.
    Unreadable,
    /// The file contained a secret of the agent, which is not kept.
    Secret,
    /// The content was purged, or never kept.
    NoLongerKept,
    /// A command changed or created it, and git does not have the earlier content.
    NotInGit,
    /// Git did not tell the earlier content in its time: a filter of the repository may be slow.
    GitLate,
    /// Commands ran, and which files they changed is not known: there is no git repository.
    NoGit,
    /// The same, because git took too long.
    GitTimeout,
    /// The same, because git failed.
    GitFailed,
    /// Commands changed more files than are listed.
    TooMany,
    /// Commands ran, and what they changed has not been found yet, or the record of it was purged.
    NotScanned,
    /// Background commands have run since the turn that was scanned last.
    Background,
    /// A directory, or something else that is not a file, is there now.
    NotAFile,
    /// A directory above it is a symlink or a file now.
    ParentReplaced,
    /// The content that the agent left is in no event, and git does not have it.
    LeftNotKept,
    /// It cannot be told whether something else changed it.
    NotChecked,
    /// It is not in a directory that the agent's tools can write: the user approved its change, or changed settings since.
    OutOfReach,
    /// What is there now could not be read.
    CurrentUnreadable,
    /// What is there now is too large to be kept for an undo.
    CurrentTooLarge,
    /// What is there now contains a secret of the agent, and cannot be kept for an undo.
    CurrentSecret,
}

impl CannotRestore {
    /// The reason as a part of a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::TooLarge => "it was too large to be kept",
            Self::Unreadable => "it could not be read before it was changed",
            Self::Secret => "it contained a secret of the agent, which is not kept",
            Self::NoLongerKept => "its earlier content is no longer kept",
            Self::NotInGit => {
                "a command changed or created it, and git does not have an earlier content"
            }
            Self::GitLate => "git could not be asked in time for its earlier content",
            Self::NoGit => {
                "commands ran, and what they changed is not known without a git repository"
            }
            Self::GitTimeout => "commands ran, and git took too long to find what they changed",
            Self::GitFailed => "commands ran, and git could not find what they changed",
            Self::TooMany => "commands changed more files than are listed",
            Self::NotScanned => "commands ran, and there is no record of what they changed",
            Self::Background => "changes by background commands since this turn are not known yet",
            Self::NotAFile => "it is not a file any more",
            Self::ParentReplaced => "a directory above it is a symlink or a file now",
            Self::LeftNotKept => "its content is not kept",
            Self::NotChecked => "agentd could not check whether it was changed since",
            Self::OutOfReach => "it is out of reach of the sandbox of the agent's tools",
            Self::CurrentUnreadable => "what is there now cannot be read",
            Self::CurrentTooLarge => "what is there now is too large to be kept for an undo",
            Self::CurrentSecret => {
                "what is there now contains a secret of the agent and cannot be kept for an undo"
            }
        }
    }

    /// Whether a restore may succeed later: the reason is what is at the path now, the sandbox, or the time that git took.
    pub const fn may_change(self) -> bool {
        matches!(
            self,
            Self::NotAFile
                | Self::ParentReplaced
                | Self::OutOfReach
                | Self::GitLate
                | Self::CurrentUnreadable
                | Self::CurrentTooLarge
                | Self::CurrentSecret
        )
    }
}

impl From<NotKept> for CannotRestore {
    fn from(why: NotKept) -> Self {
        match why {
            NotKept::TooLarge => Self::TooLarge,
            NotKept::Unreadable => Self::Unreadable,
            NotKept::Secret => Self::Secret,
        }
    }
}

impl From<ScanProblem> for CannotRestore {
    fn from(why: ScanProblem) -> Self {
        match why {
            ScanProblem::NoGit => Self::NoGit,
            ScanProblem::Timeout => Self::GitTimeout,
            ScanProblem::Failed => Self::GitFailed,
        }
    }
}
