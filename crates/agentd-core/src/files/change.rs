//! A change of a path: what made it, what was there before, and what it left.

use crate::digest::sha256;
use crate::event::{CannotRestore, FileState, GitBefore, NotKept, Oid, Position, ScannedChange};
use crate::id::{CallId, ConversationId, OpId, TurnId};
use crate::time::Timestamp;

/// The place of an event in a history. The events of the agents from which an agent was forked come before its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order(pub(super) u64);

impl Order {
    /// Before all events.
    pub const BEGINNING: Self = Self(0);
}

/// One change of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it was made. For a change by a command, that is the end of its turn.
    pub order: Order,
    /// The event that records it. In a fork, it may be in the journal of another agent.
    pub event: Position,
    pub turn: Option<TurnId>,
    pub conversation: ConversationId,
    pub at: Timestamp,
    pub path: String,
    pub by: ChangedBy,
    pub before: Earlier,
    /// The permission bits before, if a command changed only them.
    pub mode_before: Option<u32>,
    /// What it left at the path.
    pub after: Left,
    pub done: IsDone,
    /// It may not have been made by the agent: a deletion that may be older than the turn, or a change while only
    /// background commands ran.
    pub unsure: bool,
    /// For a change by a command: how the file compared with git before, if that is known.
    pub git_before: Option<GitBefore>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    Call(CallId),
    Restore(OpId),
    /// A command of the turn.
    Command(ScannedChange),
}

/// What the path was before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// Kept in the journal, in the events from `at` on.
    Kept {
        at: Position,
        state: FileState,
        size: u64,
    },
    NotKept(NotKept),
    /// A command changed it. The repository may have the content: these objects with their modes, the likeliest first.
    Git(Vec<(Oid, u32)>),
}

/// What a change left at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    Absent,
    /// A file with this hash.
    Content(String),
    Symlink(String),
    /// A symlink whose target has this hash.
    SymlinkOf(String),
    Unknown,
}

impl Left {
    /// Whether a path in this state is as the change left it.
    pub fn is(&self, state: &FileState) -> bool {
        match (self, state) {
            (Self::Absent, FileState::Absent) => true,
            (Self::Content(left), FileState::File { hash, .. }) => left == hash,
            (Self::Symlink(left), FileState::Symlink { target }) => left == target,
            (Self::SymlinkOf(left), FileState::Symlink { target }) => {
                *left == sha256(target.as_bytes())
            }
            _ => false,
        }
    }
}

impl Left {
    /// Whether both are one state. One that is not known is none.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, _) => false,
            (Self::Symlink(target), Self::SymlinkOf(hash))
            | (Self::SymlinkOf(hash), Self::Symlink(target)) => *hash == sha256(target.as_bytes()),
            _ => self == other,
        }
    }
}

impl From<&FileState> for Left {
    fn from(state: &FileState) -> Self {
        match state {
            FileState::Absent => Self::Absent,
            FileState::File { hash, .. } => Self::Content(hash.clone()),
            FileState::Symlink { target } => Self::Symlink(target.clone()),
        }
    }
}

/// Whether a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsDone {
    Yes,
    No,
    /// Its call failed, for example because the sandbox denied it. A restore compares all the same: a disk can report an error
    /// after the file was replaced.
    Failed,
    /// It may have been made.
    Unknown,
}

impl IsDone {
    /// Whether the change is shown to the user.
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Yes | Self::Unknown)
    }
}

/// A change by a file tool whose earlier content is not in the journal: it was purged or never kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub order: Order,
    pub event: Position,
    pub turn: Option<TurnId>,
    /// The call that made it; `None` for a restore. Its arguments may tell the paths.
    pub call: Option<CallId>,
    pub files: Vec<LostFile>,
    pub done: IsDone,
}

/// A file whose earlier content is not in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostFile {
    /// As [`crate::event::FileSeen::file_of`] names it; `None` if that was not recorded.
    pub file: Option<String>,
    /// `None` if it is not known: it was purged with the content.
    pub path: Option<String>,
    pub after: Left,
}

/// A turn whose commands may have changed files that are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub order: Order,
    pub turn: TurnId,
    /// [`CannotRestore::TooMany`] if some are listed, and some are not.
    pub why: CannotRestore,
    /// How many are not listed.
    pub more: u64,
}

/// Whether a mode of git is that of a symlink.
pub const fn is_link(mode: u32) -> bool {
    mode & 0o170_000 == 0o120_000
}
