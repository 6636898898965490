//! Which state each path must get, what it must be now if nothing else changed it, and what cannot be restored.

use super::change::{Change, ChangedBy, Earlier, IsDone, Left, Lost, LostFile, Order};
use super::history::History;
use super::select::Selection;
use super::target::{Known, RestorePlan, Target, Unchanged, Wanted};
use crate::event::{CannotRestore, FileSeen, FileState, GitBefore, NotRestored, Oid, Position};
use crate::id::TurnId;
use std::collections::{BTreeMap, BTreeSet};

/// Takes the selected paths back to what they were after the event `to`.
pub fn restore(history: &History, to: Order, selection: &Selection) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let mut paths: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in history.changes() {
        paths.entry(&change.path).or_default().push(change);
    }
    let lost_after = history.lost().iter().filter(|it| it.order > to);
    let lost_after = lost_after.filter(|it| it.done != IsDone::No);
    let mut lost: Vec<(&Lost, &LostFile)> = lost_after
        .flat_map(|it| it.files.iter().map(move |file| (it, file)))
        .collect();
    for (path, changes) in paths {
        let id = FileSeen::file_of(path.as_bytes());
        let known = Path {
            history,
            changes,
            id: &id,
            to,
        };
        lost.retain(|(_, file)| file.file.as_deref() != Some(id.as_str()));
        if !selection.has(path) {
            continue;
        }
        match known.wanted() {
            Ok(Some(wanted)) => plan.wanted.push(wanted),
            Ok(None) => plan.unchanged.extend(known.unchanged()),
            Err(why) => {
                let path = Some(path.to_owned());
                let not_restored = NotRestored::new(path, known.turn(why), why);
                plan.not_restored.push(not_restored);
            }
        }
    }
    plan.not_restored.extend(no_longer_kept(lost, selection));
    let gaps = history.gaps().iter().filter(|gap| gap.order > to);
    plan.not_restored
        .extend(gaps.map(|gap| NotRestored::new(None, Some(gap.turn), gap.why)));
    plan
}

/// What is left of changes whose earlier content is not in the journal: each path with the first turn that changed it, and
/// the turns that changed paths that are not known.
pub fn no_longer_kept<'a>(
    lost: impl IntoIterator<Item = (&'a Lost, &'a LostFile)>,
    selection: &Selection,
) -> Vec<NotRestored> {
    let mut paths: BTreeMap<&str, Option<TurnId>> = BTreeMap::new();
    let mut turns: BTreeSet<Option<TurnId>> = BTreeSet::new();
    for (it, file) in lost {
        match file.path.as_deref() {
            Some(path) if selection.has(path) => {
                paths.entry(path).or_insert(it.turn);
            }
            Some(_) => {}
            None => {
                turns.insert(it.turn);
            }
        }
    }
    let why = CannotRestore::NoLongerKept;
    let paths = paths.into_iter().map(|(path, turn)| (Some(path), turn));
    let turns = turns.into_iter().map(|turn| (None, turn));
    let all = paths.chain(turns);
    all.map(|(path, turn)| NotRestored::new(path.map(str::to_owned), turn, why))
        .collect()
}

/// What a path was before one of its changes.
pub fn before(history: &History, change: &Change) -> Result<Target, CannotRestore> {
    let changes = history.changes().iter();
    let changes = changes.filter(|it| it.path == change.path);
    let path = Path {
        history,
        changes: changes.collect(),
        id: &FileSeen::file_of(change.path.as_bytes()),
        to: Order(change.order.0.saturating_sub(1)),
    };
    path.target(change)
}

/// The changes of one path, and the position to which it is restored.
struct Path<'a> {
    history: &'a History,
    changes: Vec<&'a Change>,
    id: &'a str,
    to: Order,
}

impl<'a> Path<'a> {
    /// The changes after the position that were made, or may have been.
    fn later(&self) -> impl DoubleEndedIterator<Item = &'a Change> {
        let to = self.to;
        let later = self.changes.iter().copied();
        later.filter(move |change| change.order > to && change.done != IsDone::No)
    }

    fn first(&self) -> Option<&'a Change> {
        self.later().next()
    }

    /// The changes after the position whose earlier content is not in the journal, and what they left.
    fn lost(&self) -> impl Iterator<Item = (&'a Lost, &'a Left)> {
        let to = self.to;
        let lost = self.all_lost();
        lost.filter(move |(lost, _)| lost.order > to && lost.done != IsDone::No)
    }

    fn all_lost(&self) -> impl Iterator<Item = (&'a Lost, &'a Left)> {
        let lost = self.history.lost().iter();
        lost.flat_map(|lost| {
            let files = lost.files.iter();
            let files = files.filter(|file| file.file.as_deref() == Some(self.id));
            files.map(move |file| (lost, &file.after))
        })
    }

    /// The turn whose change cannot be taken back.
    fn turn(&self, why: CannotRestore) -> Option<TurnId> {
        let lost = self.lost().next();
        let lost = lost.filter(|_| why == CannotRestore::NoLongerKept);
        match lost {
            Some((lost, _)) => lost.turn,
            None => self.first().and_then(|change| change.turn),
        }
    }

    fn wanted(&self) -> Result<Option<Wanted>, CannotRestore> {
        let (Some(first), Some(last)) = (self.first(), self.later().next_back()) else {
            return match self.lost().next() {
                Some(_) => Err(CannotRestore::NoLongerKept),
                None => Ok(None),
            };
        };
        if self.lost().any(|(lost, _)| lost.order < first.order) {
            return Err(CannotRestore::NoLongerKept);
        }
        let mut expected = left_by(last);
        for (lost, after) in self.lost().filter(|(lost, _)| lost.order > last.order) {
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
            unsure: self.later().any(|change| change.unsure),
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
            let is_between = |order: Order| order > first.order && order < next.order;
            let is_lost = self.lost().any(|(lost, _)| is_between(lost.order));
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
    fn newest_earlier(&self) -> Option<Newest<'a>> {
        let known = self.changes.iter();
        let known = known.map(|change| Newest {
            order: change.order,
            event: change.event,
            done: change.done,
            after: &change.after,
        });
        let lost = self.all_lost().map(|(lost, after)| Newest {
            order: lost.order,
            event: lost.event,
            done: lost.done,
            after,
        });
        let all = known.chain(lost);
        let earlier = all.filter(|it| it.order <= self.to && it.done != IsDone::No);
        earlier.max_by_key(|it| it.order)
    }

    /// An event of this path that keeps the state that a change left.
    fn kept_as(&self, left: &Left) -> Option<Target> {
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
        let of_git = |hash: Option<String>| Target::Git {
            objects: objects.to_vec(),
            hash,
            after: first.after.clone(),
            before: first.git_before,
        };
        // Whatever an earlier change left: it was committed, or taken back.
        if first.git_before == Some(GitBefore::Clean) && !objects.is_empty() {
            return Ok(of_git(None));
        }
        let left = match self.newest_earlier().map(|it| (it.done, it.after)) {
            None => &Left::Unknown,
            // What a change left that is not known is nothing that git has for certain.
            Some((IsDone::Yes, left)) if *left != Left::Unknown => left,
            Some(_) => return Err(CannotRestore::NotInGit),
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
            false => Ok(of_git(hash)),
        }
    }
}

/// The last change of a path up to the position, and what it left.
struct Newest<'a> {
    order: Order,
    event: Position,
    done: IsDone,
    after: &'a Left,
}

impl Path<'_> {
    /// The path as the last change up to the position left it; `None` if no change is recorded.
    fn unchanged(&self) -> Option<Unchanged> {
        let changes = self.changes.iter();
        let path = changes.map(|change| &change.path).next()?;
        let newest = self.newest_earlier()?;
        let mut left = vec![newest.after.clone()];
        let mut changes = self.changes.iter().rev();
        let change = changes.find(|it| it.order == newest.order);
        if newest.done != IsDone::Yes {
            left.push(match change.map(|change| &change.before) {
                Some(Earlier::Kept { state, .. }) => Left::from(state),
                _ => Left::Unknown,
            });
        }
        // What commands changed between that change and the position may not be known.
        let mut gaps = self.history.gaps().iter();
        let has_gap = gaps.any(|gap| gap.order > newest.order && gap.order <= self.to);
        let known = match has_gap || left.contains(&Left::Unknown) {
            true => Known::No,
            false => Known::Yes,
        };
        let target = match left.as_slice() {
            [only] => self.left_at(only, newest.event),
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
    fn left_at(&self, left: &Left, at: Position) -> Option<Target> {
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
            before: None,
        })
    }
}

fn has(objects: &[(Oid, u32)], oid: &Oid) -> bool {
    objects.iter().any(|(known, _)| known == oid)
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
