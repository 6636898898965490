//! Which state each path must get, what it must be now if nothing else changed it, and what cannot be restored.

use super::cannot::{CannotRestore, NotRestored};
use super::change::{Change, ChangedBy, Earlier, IsDone, Left, Lost};
use super::history::History;
use super::select::Selection;
use super::unchanged::Unchanged;
use crate::event::{FileSeen, FileState, Oid};
use crate::id::{Seq, TurnId};
use std::collections::{BTreeMap, BTreeSet};

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
}

impl Wanted {
    /// Whether it is known what the agent left. A scan does not read a large file to its end.
    pub fn is_left_known(&self) -> bool {
        !self.expected.contains(&Left::Unknown)
    }

    /// Whether a restore would replace a content by one that git has, although it is not known that the path had it:
    /// the user may have changed the file before the command did, and the lines of the user would be gone.
    pub fn is_guess(&self, target: &FileState, now: &FileState) -> bool {
        let is_known = !matches!(self.target, Target::Git { hash: None, .. });
        !is_known && !Left::from(target).is(now)
    }
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
    /// These permission bits; the content with this hash stays.
    Mode { mode: u32, hash: String },
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

/// Takes the selected paths back to what they were after the event `to`.
pub fn restore(history: &History, to: Seq, selection: &Selection) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let mut paths: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in history.changes() {
        paths.entry(&change.path).or_default().push(change);
    }
    let mut lost: BTreeSet<(Option<TurnId>, Option<&str>)> = BTreeSet::new();
    let lost_after = history.lost().iter().filter(|it| it.seq > to);
    for it in lost_after.filter(|it| it.done != IsDone::No) {
        let files = it.files.iter().map(|lost| lost.file.as_deref());
        lost.extend(files.map(|file| (it.turn, file)));
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
            lost.retain(|(_, file)| *file != Some(id.as_str()));
        }
        if !selection.has(path) {
            continue;
        }
        match known.wanted() {
            Ok(Some(wanted)) => plan.wanted.push(wanted),
            Ok(None) => plan.unchanged.extend(known.unchanged()),
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
        .extend(gaps.map(|gap| unknown(Some(gap.turn), gap.why)));
    plan
}

/// The changes of one path, and the position to which it is restored.
pub(super) struct Path<'a> {
    pub history: &'a History,
    pub changes: Vec<&'a Change>,
    id: &'a str,
    pub to: Seq,
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

    /// The changes after the position whose earlier content is not in the journal, and what they left.
    fn lost(&self) -> impl Iterator<Item = (&'a Lost, &'a Left)> {
        let to = self.to;
        let lost = self.all_lost();
        lost.filter(move |(lost, _)| lost.seq > to && lost.done != IsDone::No)
    }

    fn all_lost(&self) -> impl Iterator<Item = (&'a Lost, &'a Left)> {
        let lost = self.history.lost().iter();
        lost.flat_map(|lost| {
            let files = lost.files.iter();
            let files = files.filter(|file| file.file.as_deref() == Some(self.id));
            files.map(move |file| (lost, &file.after))
        })
    }

    fn wanted(&self) -> Result<Option<Wanted>, CannotRestore> {
        let (Some(first), Some(last)) = (self.first(), self.later().next_back()) else {
            return Ok(None);
        };
        if self.lost().any(|(lost, _)| lost.seq < first.seq) {
            return Err(CannotRestore::NoLongerKept);
        }
        let mut expected = left_by(last);
        for (lost, after) in self.lost().filter(|(lost, _)| lost.seq > last.seq) {
            if lost.done == IsDone::Yes {
                expected.clear();
            }
            expected.push(after.clone());
        }
        if self.is_changed_between() {
            // Only what is there already is right.
            expected.clear();
        }
        Ok(Some(Wanted {
            path: first.path.clone(),
            target: self.target(first)?,
            expected,
        }))
    }

    /// Whether something else changed the path between two changes of the agent. If commands ran between them, they may have:
    /// what they changed is looked for only after their turn. What a restore replaced was decided by the user.
    fn is_changed_between(&self) -> bool {
        let later: Vec<&Change> = self.later().collect();
        let mut pairs = later.iter().zip(later.iter().skip(1));
        pairs.any(|(first, next)| {
            let Earlier::Kept { state, .. } = &next.before else {
                return false;
            };
            let is_made = first.done == IsDone::Yes && next.done == IsDone::Yes;
            let is_made = is_made && matches!(next.by, ChangedBy::Call(_));
            let is_known = is_made && first.after != Left::Unknown;
            let is_between = |seq: Seq| seq > first.seq && seq < next.seq;
            let is_lost = self.lost().any(|(lost, _)| is_between(lost.seq));
            let is_own =
                first.after.is(state) || is_lost || self.history.commands().any(is_between);
            is_known && !is_own
        })
    }

    fn target(&self, first: &'a Change) -> Result<Target, CannotRestore> {
        match &first.before {
            Earlier::Kept { at, state, size } => Ok(Target::Kept {
                at: *at,
                state: state.clone(),
                size: *size,
            }),
            Earlier::NotKept(why) => Err((*why).into()),
            Earlier::Git(objects) => {
                let found = self.of_command(first, objects);
                match (first.mode_before, &first.after) {
                    (Some(mode), Left::Content(hash)) => Ok(of_mode(found, mode, hash)),
                    _ => found,
                }
            }
        }
    }

    /// The last change before the position that was made or may have been, and what it left.
    pub(super) fn newest_earlier(&self) -> Option<(Seq, IsDone, &'a Left)> {
        let known = self.changes.iter();
        let known = known.map(|change| (change.seq, change.done, &change.after));
        let lost = self.all_lost();
        let lost = lost.map(|(lost, after)| (lost.seq, lost.done, after));
        let all = known.chain(lost);
        let earlier = all.filter(|(seq, done, _)| *seq <= self.to && *done != IsDone::No);
        earlier.max_by_key(|(seq, ..)| *seq)
    }

    /// An event of this path that keeps the state that a change left.
    pub(super) fn kept_as(&self, left: &Left) -> Option<Target> {
        let mut changes = self.changes.iter();
        changes.find_map(|change| match &change.before {
            Earlier::Kept { at, state, size } if left.is(state) => Some(Target::Kept {
                at: *at,
                state: state.clone(),
                size: *size,
            }),
            _ => None,
        })
    }

    /// The state before a change by a command. What an earlier change left is known by its hash, and the content may be
    /// in another event.
    fn of_command(
        &self,
        first: &'a Change,
        objects: &[(Oid, u32)],
    ) -> Result<Target, CannotRestore> {
        let left = match self.newest_earlier() {
            None => &Left::Unknown,
            // What a change left that is not known is nothing that git has for certain.
            Some((_, IsDone::Yes, Left::Unknown) | (_, IsDone::Unknown | IsDone::No, _)) => {
                return Err(CannotRestore::NotInGit);
            }
            Some((_, IsDone::Yes, left)) => left,
        };
        if let Some(target) = self.kept_as(left) {
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

/// A command changed the permission bits, and nothing else: they are restored, also if the content is nowhere but at the
/// path.
fn of_mode(found: Result<Target, CannotRestore>, mode: u32, hash: &str) -> Target {
    match found {
        Ok(Target::Kept {
            at,
            state: FileState::File { hash, .. },
            size,
        }) => Target::Kept {
            at,
            state: FileState::File { mode, hash },
            size,
        },
        _ => Target::Mode {
            mode,
            hash: hash.to_owned(),
        },
    }
}

/// The states that a change may have left.
pub(super) fn left_by(change: &Change) -> Vec<Left> {
    let mut left = vec![change.after.clone()];
    if change.done != IsDone::Yes
        && let Earlier::Kept { state, .. } = &change.before
    {
        left.push(Left::from(state));
    }
    left
}
