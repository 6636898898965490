//! What a restore is to do with each path: the state that it is to get, or what it must be if nothing else changed it.

use super::change::Left;
use super::work::Found;
use crate::event::{CannotRestore, FileState, GitBefore, NotRestored, Oid, Position};
use std::collections::BTreeMap;

/// What a restore is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// Ordered by path.
    pub wanted: Vec<Wanted>,
    /// What the agent has not changed after the position, ordered by path.
    pub unchanged: Vec<Unchanged>,
    pub not_restored: Vec<NotRestored>,
}

/// A path and the state that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub path: String,
    pub target: Target,
    /// The states in which the agent may have left the path. In any other state it was changed by something else.
    pub expected: Vec<Left>,
    /// Something else than the agent may have made one of its changes.
    pub unsure: bool,
}

/// Why the user must decide about a path, although it is as the agent left it: what the user had there could be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MustAsk {
    /// The file had changes that were not committed. Only git's copy is left.
    Uncommitted,
    /// What the file was is not known. Git has a copy.
    Unknown,
    /// It may have been deleted before the turn.
    Deleted,
    /// It was changed while only background commands ran: perhaps by the user.
    Background,
}

impl Wanted {
    /// Whether it is known what the agent left. A scan does not read a large file to its end.
    pub fn is_left_known(&self) -> bool {
        !self.expected.contains(&Left::Unknown)
    }

    /// Why the user must decide whether `wanted` replaces `now`. The copy of git is not always what the path had, and lines
    /// of the user that a command has deleted are in no other place.
    pub fn must_ask(&self, wanted: &FileState, now: &FileState) -> Option<MustAsk> {
        if Left::from(wanted).is(now) {
            // Only permission bits are replaced.
            return None;
        }
        match &self.target {
            Target::Git {
                hash: None,
                before: Some(GitBefore::Changed),
                ..
            } => Some(MustAsk::Uncommitted),
            target if target.is_certain() => {
                // Where no file is any more, there are no lines to lose.
                let may_lose = self.unsure && *now != FileState::Absent;
                may_lose.then_some(MustAsk::Background)
            }
            _ if self.unsure && *now == FileState::Absent => Some(MustAsk::Deleted),
            _ => Some(MustAsk::Unknown),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Kept in the events from `at` on.
    Kept {
        at: Position,
        state: FileState,
        size: u64,
    },
    /// One of these objects of the repository.
    Git {
        objects: Vec<(Oid, u32)>,
        /// The content that the path had, if its hash is known.
        hash: Option<String>,
        /// What the command left.
        after: Left,
        /// How the path compared with git before the command, if that is known.
        before: Option<GitBefore>,
    },
    /// These permission bits; the content with this hash stays.
    Mode { mode: u32, hash: String },
}

impl Target {
    /// Whether it is what the path was: a content of git may be older, unless the journal has its hash or the file was
    /// clean.
    pub const fn is_certain(&self) -> bool {
        !matches!(
            self,
            Self::Git {
                hash: None,
                before: None | Some(GitBefore::Changed),
                ..
            }
        )
    }

    /// The object with the content that the path had, given the hashes of the objects' contents; `None` if none of
    /// them has it. A command may have put its own content into the index, which is then the newest one.
    pub fn object(&self, hashes: &BTreeMap<Oid, String>) -> Option<(Oid, u32, String)> {
        let Self::Git {
            objects,
            hash,
            after,
            ..
        } = self
        else {
            return None;
        };
        let known = objects.iter().filter_map(|(oid, mode)| {
            let content = hashes.get(oid)?;
            Some((oid.clone(), *mode, content.clone()))
        });
        let known: Vec<(Oid, u32, String)> = known.collect();
        let is_left = |content: &String| *after == Left::Content(content.clone());
        let found = match hash {
            Some(hash) => known.iter().find(|(_, _, content)| content == hash),
            None => {
                let other = known.iter().find(|(_, _, content)| !is_left(content));
                other.or_else(|| known.first())
            }
        };
        found.cloned()
    }
}

/// A path that the agent has not changed after the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    pub path: String,
    /// The states in which the agent may have left the path.
    pub left: Vec<Left>,
    pub known: Known,
    /// What has the state that the agent left, if it is still there.
    pub target: Option<Target>,
}

/// Whether the states that the journal records are all that the path may have had at the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Yes,
    /// A command may have changed it before the position, or what the last change left was not read.
    No,
}

/// What is at such a path, compared with what the agent left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedUnchanged {
    /// It is as the agent left it.
    Same,
    /// Something else changed it.
    Changed,
    /// Something that is not a file is there, or above it.
    NotAFile(String),
    /// It cannot be told whether it was changed.
    NotChecked,
}

impl Unchanged {
    pub fn compare(&self, found: Option<&Found>) -> ComparedUnchanged {
        let now = match found {
            Some(Found::Known { state, .. }) => state,
            Some(Found::Other { what }) => {
                return ComparedUnchanged::NotAFile(format!("it is {what} now"));
            }
            Some(Found::Blocked { what }) => {
                return ComparedUnchanged::NotAFile(format!("{what} now"));
            }
            Some(Found::Failed { .. }) | None => return ComparedUnchanged::NotChecked,
        };
        match self.left.iter().any(|left| left.is(now)) {
            true => ComparedUnchanged::Same,
            false if self.known == Known::No => ComparedUnchanged::NotChecked,
            false => ComparedUnchanged::Changed,
        }
    }

    /// Why the path cannot get the state that the agent left, if that is so.
    pub const fn cannot_restore(&self) -> Option<CannotRestore> {
        match self.target {
            Some(_) => None,
            None => Some(CannotRestore::LeftNotKept),
        }
    }
}
