//! Which state each path must get, what it must be now if nothing else changed it, and what cannot be restored.

use super::change::{Change, ChangedBy, Earlier, IsDone, Left};
use super::history::History;
use super::select::Selection;
use crate::event::{FileSeen, FileState, NotKept, Oid, ScanProblem};
use crate::id::{OpId, Seq, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a restore is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// Ordered by path.
    pub wanted: Vec<Wanted>,
    pub not_restored: Vec<NotRestored>,
}

/// A path and the state that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub path: String,
    pub target: Target,
    /// The states in which the agent may have left the path. In any other state it was changed by something else.
    pub expected: Vec<Left>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Kept in the events from `at` on.
    Kept {
        at: Seq,
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
    },
}

impl Target {
    /// The object with the content that the path had, given the hashes of the objects' contents; `None` if none of
    /// them has it. A command may have put its own content into the index, which is then the newest one.
    pub fn object(&self, hashes: &BTreeMap<Oid, String>) -> Option<(Oid, u32, String)> {
        let Self::Git {
            objects,
            hash,
            after,
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

/// Something that a restore leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRestored {
    /// `None` if the path is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The turn that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    pub why: CannotRestore,
}

/// Why a path cannot be restored.
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
    /// Commands ran, and which files they changed is not known: there is no git repository.
    NoGit,
    /// The same, because git took too long.
    GitTimeout,
    /// The same, because git failed.
    GitFailed,
    /// Commands changed more files than are listed.
    TooMany,
    /// A directory, or something else that is not a file, is there now.
    NotAFile,
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
            Self::NotInGit => "a command changed it, and git does not have the earlier content",
            Self::NoGit => {
                "commands ran, and what they changed is not known without a git repository"
            }
            Self::GitTimeout => "commands ran, and git took too long to find what they changed",
            Self::GitFailed => "commands ran, and git could not find what they changed",
            Self::TooMany => "commands changed more files than are listed",
            Self::NotAFile => "it is not a file any more",
            Self::OutOfReach => "it is out of reach of the sandbox of the agent's tools",
            Self::CurrentUnreadable => "what is there now cannot be read",
            Self::CurrentTooLarge => "what is there now is too large to be kept for an undo",
            Self::CurrentSecret => {
                "what is there now contains a secret of the agent and cannot be kept for an undo"
            }
        }
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

impl From<Option<ScanProblem>> for CannotRestore {
    fn from(why: Option<ScanProblem>) -> Self {
        match why {
            Some(ScanProblem::NoGit) => Self::NoGit,
            Some(ScanProblem::Timeout) => Self::GitTimeout,
            Some(ScanProblem::Failed) => Self::GitFailed,
            None => Self::TooMany,
        }
    }
}

/// Takes the selected paths back to what they were after the event `to`.
pub fn restore(history: &History, to: Seq, selection: &Selection) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let mut paths: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in history.changes() {
        paths.entry(&change.path).or_default().push(change);
    }
    let mut lost: BTreeSet<(Option<TurnId>, &str)> = BTreeSet::new();
    let lost_after = history.lost().iter().filter(|it| it.seq > to);
    for it in lost_after.filter(|it| it.done != IsDone::No) {
        lost.extend(it.files.iter().map(|(file, _)| (it.turn, file.as_str())));
    }
    for (path, changes) in paths {
        let id = FileSeen::file_of(path.as_bytes());
        let known = Path {
            history,
            changes,
            id: &id,
            to,
        };
        let is_changed = known.first().is_some();
        if is_changed {
            lost.retain(|(_, file)| *file != id);
        }
        if !selection.has(path) {
            continue;
        }
        match known.wanted() {
            Ok(Some(wanted)) => plan.wanted.push(wanted),
            Ok(None) => {}
            Err(why) => plan.not_restored.push(NotRestored {
                path: Some(path.to_owned()),
                turn: known.first().and_then(|change| change.turn),
                why,
            }),
        }
    }
    let unknown = |turn, why| NotRestored {
        path: None,
        turn,
        why,
    };
    let turns: BTreeSet<Option<TurnId>> = lost.into_iter().map(|(turn, _)| turn).collect();
    let lost = turns.into_iter();
    plan.not_restored
        .extend(lost.map(|turn| unknown(turn, CannotRestore::NoLongerKept)));
    let gaps = history.gaps().iter().filter(|gap| gap.seq > to);
    plan.not_restored
        .extend(gaps.map(|gap| unknown(Some(gap.turn), gap.why.into())));
    plan
}

/// The changes of one path, and the position to which it is restored.
struct Path<'a> {
    history: &'a History,
    changes: Vec<&'a Change>,
    id: &'a str,
    to: Seq,
}

impl<'a> Path<'a> {
    /// The changes after the position that were made, or may have been.
    fn later(&self) -> impl DoubleEndedIterator<Item = &'a Change> {
        let to = self.to;
        let later = self.changes.iter().copied();
        later.filter(move |change| change.seq > to && change.done != IsDone::No)
    }

    fn first(&self) -> Option<&'a Change> {
        self.later().next()
    }

    /// The contents that changes left whose earlier content is not in the journal, with their positions.
    fn lost(&self) -> impl Iterator<Item = (Seq, &'a str)> {
        let lost = self.history.lost().iter();
        let lost = lost.filter(|lost| lost.done != IsDone::No && lost.seq > self.to);
        lost.flat_map(|lost| {
            let files = lost.files.iter().filter(|(file, _)| file == self.id);
            files.map(|(_, after)| (lost.seq, after.as_str()))
        })
    }

    fn wanted(&self) -> Result<Option<Wanted>, CannotRestore> {
        let (Some(first), Some(last)) = (self.first(), self.later().next_back()) else {
            return Ok(None);
        };
        if self.lost().any(|(seq, _)| seq < first.seq) {
            return Err(CannotRestore::NoLongerKept);
        }
        let mut expected = left_by(last);
        let lost_last = self.lost().last().filter(|(seq, _)| *seq > last.seq);
        if let Some((_, after)) = lost_last {
            expected = vec![Left::Content(after.to_owned())];
        }
        Ok(Some(Wanted {
            path: first.path.clone(),
            target: self.target(first)?,
            expected,
        }))
    }

    fn target(&self, first: &'a Change) -> Result<Target, CannotRestore> {
        match &first.before {
            Earlier::Kept { at, state, size } => Ok(Target::Kept {
                at: *at,
                state: state.clone(),
                size: *size,
            }),
            Earlier::NotKept(why) => Err((*why).into()),
            Earlier::Git(objects) => self.of_command(first, objects),
        }
    }

    /// The state before a change by a command. What an earlier change left is known by its hash, and the content may be
    /// in another event.
    fn of_command(
        &self,
        first: &'a Change,
        objects: &[(Oid, u32)],
    ) -> Result<Target, CannotRestore> {
        let earlier = self.changes.iter().rev();
        let mut earlier = earlier.filter(|change| change.seq <= self.to);
        let left = earlier.find(|change| change.done == IsDone::Yes);
        let left = left.map_or(&Left::Unknown, |change| &change.after);
        let is_it = |state: &FileState| left.is(state);
        let mut known = self
            .changes
            .iter()
            .filter_map(|change| match &change.before {
                Earlier::Kept { at, state, size } if is_it(state) => Some(Target::Kept {
                    at: *at,
                    state: state.clone(),
                    size: *size,
                }),
                _ => None,
            });
        if let Some(target) = known.next() {
            return Ok(target);
        }
        let hash = match left {
            Left::Content(hash) => Some(hash.clone()),
            Left::Absent | Left::Symlink(_) | Left::SymlinkOf(_) => {
                return Err(CannotRestore::NotInGit);
            }
            Left::Unknown => None,
        };
        match objects.is_empty() {
            true => Err(CannotRestore::NotInGit),
            false => Ok(Target::Git {
                objects: objects.to_vec(),
                hash,
                after: first.after.clone(),
            }),
        }
    }
}

/// The states that a change may have left.
fn left_by(change: &Change) -> Vec<Left> {
    let mut left = vec![change.after.clone()];
    if change.done != IsDone::Yes
        && let Earlier::Kept { state, .. } = &change.before
    {
        left.push(Left::from(state));
    }
    left
}

/// Takes back what a restore did to the selected paths.
pub fn undo(history: &History, op: OpId, selection: &Selection) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let changes = history.changes().iter();
    let of_op = changes.filter(|it| it.by == ChangedBy::Restore(op) && selection.has(&it.path));
    for change in of_op.filter(|change| change.done != IsDone::No) {
        match &change.before {
            Earlier::Kept { at, state, size } => plan.wanted.push(Wanted {
                path: change.path.clone(),
                target: Target::Kept {
                    at: *at,
                    state: state.clone(),
                    size: *size,
                },
                expected: left_by(change),
            }),
            Earlier::NotKept(why) => plan.not_restored.push(NotRestored {
                path: Some(change.path.clone()),
                turn: None,
                why: (*why).into(),
            }),
            Earlier::Git(_) => {}
        }
    }
    let is_purged = plan.wanted.is_empty() && plan.not_restored.is_empty();
    if is_purged {
        plan.not_restored.push(NotRestored {
            path: None,
            turn: None,
            why: CannotRestore::NoLongerKept,
        });
    }
    plan.wanted.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}

/// What is to be done about one path, given what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It already is what it is to be.
    Same,
    /// It is as the agent left it.
    AsLeft,
    /// Something else changed it.
    Changed,
}

/// Compares what is at a path with what is to be there, and with what the agent left.
pub fn compare(now: &FileState, target: &FileState, expected: &[Left]) -> Compared {
    if now == target {
        return Compared::Same;
    }
    // A file that differs from the target only in its permissions loses no content.
    let has_content = Left::from(target).is(now);
    match has_content || expected.iter().any(|left| left.is(now)) {
        true => Compared::AsLeft,
        false => Compared::Changed,
    }
}
