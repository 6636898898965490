//! Paths that the agent has not changed after a position. A restore looks at them too: something else may have changed
//! them.

use super::cannot::CannotRestore;
use super::change::{Earlier, IsDone, Left};
use super::plan::{Path, Target};
use super::work::Found;
use crate::event::{FileState, Oid};

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

impl Path<'_> {
    /// The path as the last change up to the position left it; `None` if no change is recorded.
    pub(super) fn unchanged(&self) -> Option<Unchanged> {
        let changes = self.changes.iter();
        let path = changes.map(|change| &change.path).next()?;
        let (seq, done, after) = self.newest_earlier()?;
        let mut left = vec![after.clone()];
        let change = self.changes.iter().rev().find(|it| it.seq == seq);
        if done != IsDone::Yes {
            left.push(match change.map(|change| &change.before) {
                Some(Earlier::Kept { state, .. }) => Left::from(state),
                _ => Left::Unknown,
            });
        }
        // What commands changed between that change and the position may not be known.
        let mut gaps = self.history.gaps().iter();
        let has_gap = gaps.any(|gap| gap.seq > seq && gap.seq <= self.to);
        let known = match has_gap || left.contains(&Left::Unknown) {
            true => Known::No,
            false => Known::Yes,
        };
        let target = match left.as_slice() {
            [only] => self.left_at(only, seq),
            _ => None,
        };
        Some(Unchanged {
            path: path.clone(),
            left,
            known,
            target,
        })
    }

    /// Where the state is that a change left: in another event, in the repository, or in the record of the change itself.
    fn left_at(&self, left: &Left, at: crate::id::Seq) -> Option<Target> {
        if let Some(kept) = self.kept_as(left) {
            return Some(kept);
        }
        let state = match left {
            Left::Absent => FileState::Absent,
            Left::Symlink(target) => FileState::Symlink {
                target: target.clone(),
            },
            Left::Content(hash) => return self.of_git(left, hash),
            Left::SymlinkOf(_) | Left::Unknown => return None,
        };
        Some(Target::Kept { at, state, size: 0 })
    }

    /// An object of the repository that may have this content.
    fn of_git(&self, left: &Left, hash: &str) -> Option<Target> {
        let mut objects: Vec<(Oid, u32)> = Vec::new();
        for change in &self.changes {
            if let Earlier::Git(known) = &change.before {
                let new = known.iter().filter(|(oid, _)| !has(&objects, oid));
                let new: Vec<_> = new.cloned().collect();
                objects.extend(new);
            }
        }
        (!objects.is_empty()).then(|| Target::Git {
            objects,
            hash: Some(hash.to_owned()),
            after: left.clone(),
        })
    }
}

fn has(objects: &[(Oid, u32)], oid: &Oid) -> bool {
    objects.iter().any(|(known, _)| known == oid)
}
