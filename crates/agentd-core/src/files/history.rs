//! The changes of files that a journal records, in the order in which they were made.

use super::change::{Change, ChangedBy, Earlier, Gap, IsDone, Left, Lost, is_link};
use crate::event::{
    Body, Event, FileBefore, FileKept, FileState, FilesPlan, FilesRestored, FilesScanned, KeptBy,
    KeptContent, Kind, Oid, RestoreTarget, RestoredOutcome, Scan, ScannedChange, ScannedFile,
    ToolEnded, ToolStarted,
};
use crate::id::{CallId, OpId, Seq, TurnId};
use crate::message::CallOutcome;
use std::collections::BTreeMap;

/// The kinds of events that change what [`History`] says, or what is left of the contents that it refers to. Their long
/// strings are not needed.
pub const KINDS: &[Kind] = &[
    Kind::FileKept,
    Kind::FilesScanned,
    Kind::FilesPlan,
    Kind::FilesRestored,
    Kind::ToolStarted,
    Kind::ToolEnded,
    Kind::TurnEnded,
    Kind::Purged,
];

/// The changes of files in a journal.
#[derive(Clone, Debug, Default)]
pub struct History {
    changes: Vec<Change>,
    lost: Vec<Lost>,
    gaps: Vec<Gap>,
    /// Changes of a call whose start has not been read yet, by their index.
    kept: BTreeMap<CallId, Vec<usize>>,
    running: BTreeMap<CallId, Running>,
    plans: BTreeMap<OpId, FilesPlan>,
    /// Where turns ended. What commands of a turn changed is recorded after that.
    ends: BTreeMap<TurnId, Seq>,
}

#[derive(Clone, Debug, Default)]
struct Running {
    changes: Vec<usize>,
    lost: Option<usize>,
}

impl History {
    /// The history of these events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut history = Self::default();
        events.into_iter().for_each(|event| history.apply(event));
        history
    }

    /// All changes, the oldest first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// What a restore planned.
    pub fn plan(&self, op: OpId) -> Option<&FilesPlan> {
        self.plans.get(&op)
    }

    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::FileKept(kept) if kept.part == 0 => self.file_kept(event, kept),
            Body::ToolStarted(started) => self.tool_started(event, started),
            Body::ToolEnded(ended) => self.tool_ended(ended),
            Body::FilesScanned(scanned) => self.scanned(event, scanned),
            Body::FilesPlan(plan) => {
                self.plans.insert(plan.op, plan.clone());
            }
            Body::FilesRestored(restored) => self.restored(restored),
            Body::TurnEnded(_) => {
                self.ends.extend(event.turn.map(|turn| (turn, event.seq)));
            }
            _ => {}
        }
    }

    fn file_kept(&mut self, event: &Event, kept: &FileKept) {
        let by = match &kept.by {
            KeptBy::Call { call } => {
                let index = self.changes.len();
                self.kept.entry(call.clone()).or_default().push(index);
                ChangedBy::Call(call.clone())
            }
            KeptBy::Restore { op } => ChangedBy::Restore(*op),
        };
        let before = earlier(event.seq, &kept.before);
        let after = match &by {
            ChangedBy::Restore(op) => self.planned(*op, &kept.path),
            _ => Left::Unknown,
        };
        self.changes.push(Change {
            seq: event.seq,
            turn: event.turn,
            conversation: event.conversation,
            at: event.at,
            path: kept.path.clone(),
            by,
            before,
            after,
            done: IsDone::Unknown,
        });
    }

    /// What the plan of a restore writes to a path.
    fn planned(&self, op: OpId, path: &str) -> Left {
        let files = self.plans.get(&op).map(|plan| &plan.files);
        let mut files = files.into_iter().flatten();
        match files
            .find(|file| file.path == path)
            .map(|file| &file.target)
        {
            Some(RestoreTarget::Kept {
                state: Some(state), ..
            }) => Left::from(state),
            Some(RestoreTarget::Kept { at, state: None }) => {
                let mut earlier = self.changes.iter().map(|change| &change.before);
                let state = earlier.find_map(|before| match before {
                    Earlier::Kept {
                        at: kept, state, ..
                    } if *kept == at.seq => Some(Left::from(state)),
                    _ => None,
                });
                state.unwrap_or(Left::Unknown)
            }
            Some(RestoreTarget::Git { mode, hash, .. }) => match is_link(*mode) {
                true => Left::SymlinkOf(hash.clone()),
                false => Left::Content(hash.clone()),
            },
            None => Left::Unknown,
        }
    }

    fn tool_started(&mut self, event: &Event, started: &ToolStarted) {
        let kept = self.kept.remove(&started.call).unwrap_or_default();
        let changes = changes(started);
        let mut lost = Vec::new();
        let mut left = kept.iter().copied().peekable();
        for change in &changes {
            // In the order of the call; a path whose content stays the same is not kept.
            let next = left.peek().and_then(|index| self.changes.get_mut(*index));
            match next.filter(|next| is_before(&next.before, change.before)) {
                Some(next) => {
                    next.after = change
                        .after
                        .map_or(Left::Absent, |it| Left::Content(it.into()));
                    left.next();
                }
                None => lost.extend(change.after.map(str::to_owned)),
            }
        }
        let lost = (!lost.is_empty()).then(|| {
            let files = lost.into_iter().map(|after| (String::new(), after));
            self.lost.push(Lost {
                seq: event.seq,
                turn: event.turn,
                files: files.collect(),
                done: IsDone::Unknown,
            });
            self.lost.len() - 1
        });
        if lost.is_some() || !kept.is_empty() {
            let running = Running {
                changes: kept,
                lost,
            };
            self.running.insert(started.call.clone(), running);
        }
    }

    fn tool_ended(&mut self, ended: &ToolEnded) {
        let Some(running) = self.running.remove(&ended.call) else {
            return;
        };
        let done = match ended.outcome {
            CallOutcome::Ok => IsDone::Yes,
            CallOutcome::Denied | CallOutcome::NotStarted => IsDone::No,
            CallOutcome::Error | CallOutcome::Interrupted | CallOutcome::Unknown => IsDone::Unknown,
        };
        for index in running.changes {
            if let Some(change) = self.changes.get_mut(index) {
                change.done = done;
            }
        }
        let lost = running.lost.and_then(|index| self.lost.get_mut(index));
        if let Some(lost) = lost {
            lost.done = done;
            for (file, after) in &mut lost.files {
                let seen = ended.seen.iter().find(|seen| seen.content == *after);
                if let Some(seen) = seen {
                    file.clone_from(&seen.file);
                }
            }
        }
    }

    fn scanned(&mut self, event: &Event, scanned: &FilesScanned) {
        let turn = scanned.turn;
        let seq = self.ends.get(&turn).copied().unwrap_or(event.seq);
        match &scanned.found {
            Scan::Known { files, more } => {
                let changes = files
                    .iter()
                    .map(|file| of_command(event, (turn, seq), file));
                self.changes.extend(changes);
                if *more > 0 {
                    let (why, more) = (None, *more);
                    self.gaps.push(Gap {
                        seq,
                        turn,
                        why,
                        more,
                    });
                }
            }
            Scan::Unknown { why } => self.gaps.push(Gap {
                seq,
                turn,
                why: Some(*why),
                more: 0,
            }),
        }
    }

    fn restored(&mut self, restored: &FilesRestored) {
        for change in &mut self.changes {
            if change.by != ChangedBy::Restore(restored.op) {
                continue;
            }
            let mut files = restored.files.iter();
            if let Some(file) = files.find(|file| file.path == change.path) {
                change.done = match &file.outcome {
                    RestoredOutcome::Restored => IsDone::Yes,
                    RestoredOutcome::Conflict => IsDone::No,
                    RestoredOutcome::Failed { .. } => IsDone::Unknown,
                };
            }
        }
    }
}

/// A change of one path, as the start of a call records it.
struct Recorded<'a> {
    before: Option<&'a str>,
    after: Option<&'a str>,
}

/// The changes that a call was to make, without those that change nothing.
fn changes(started: &ToolStarted) -> Vec<Recorded<'_>> {
    let one = started.change.iter().map(|change| Recorded {
        before: change.before.as_deref(),
        after: Some(&change.after),
    });
    let several = started.patched.iter().map(|file| Recorded {
        before: file.before.as_deref(),
        after: file.after.as_deref(),
    });
    let all = one.chain(several);
    all.filter(|change| change.before != change.after).collect()
}

fn is_before(earlier: &Earlier, hash: Option<&str>) -> bool {
    match earlier {
        Earlier::Kept { state, .. } => match state {
            FileState::File { hash: known, .. } => hash == Some(known),
            FileState::Absent | FileState::Symlink { .. } => hash.is_none(),
        },
        Earlier::NotKept(_) => hash.is_some(),
        Earlier::Git(_) => false,
    }
}

fn earlier(at: Seq, before: &FileBefore) -> Earlier {
    let (state, size) = match before {
        FileBefore::File {
            content: KeptContent::NotKept { why },
            ..
        } => return Earlier::NotKept(*why),
        FileBefore::File {
            mode, size, hash, ..
        } => {
            let (mode, hash) = (*mode, hash.clone());
            (FileState::File { mode, hash }, *size)
        }
        FileBefore::Absent => (FileState::Absent, 0),
        FileBefore::Symlink { target } => {
            let target = target.clone();
            (FileState::Symlink { target }, 0)
        }
    };
    Earlier::Kept { at, state, size }
}

fn of_command(event: &Event, (turn, seq): (TurnId, Seq), file: &ScannedFile) -> Change {
    let mut objects: Vec<(Oid, u32)> = Vec::new();
    // What git has of a file that the newest commit does not have is a content of this turn.
    let known = match file.change {
        ScannedChange::Added => [None, None],
        _ => [file.index.as_ref(), file.head.as_ref()],
    };
    for oid in known.into_iter().flatten() {
        if !objects.iter().any(|(known, _)| known == oid) {
            objects.push((oid.clone(), file.mode));
        }
    }
    Change {
        seq,
        turn: Some(turn),
        conversation: event.conversation,
        at: event.at,
        path: file.path.clone(),
        by: ChangedBy::Command(file.change),
        before: Earlier::Git(objects),
        after: match (&file.after, file.change) {
            (Some(hash), _) => Left::Content(hash.clone()),
            (None, ScannedChange::Deleted) => Left::Absent,
            (None, _) => Left::Unknown,
        },
        done: IsDone::Yes,
    }
}
