//! The changes of files that a journal records, in the order in which they were made.

use super::change::{
    Change, ChangedBy, Earlier, Gap, IsDone, Left, Lost, LostFile, Order, is_link,
};
use super::journals::Inherited;
use super::left_by_restores::LeftByRestores;
use super::recorded::{Recorded, changes, earlier, is_before, of_command, position};
use crate::event::{
    Body, CannotRestore, Event, FileKept, FileSeen, FilesPlan, FilesRestored, FilesScanned, KeptBy,
    Kind, Position, RestoreTarget, RestoredOutcome, Scan, ToolEnded, ToolStarted,
};
use crate::id::{CallId, ConversationId, OpId, Seq, TurnId};
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

/// The changes of files in a journal, after those of the journals that it was forked from.
#[derive(Clone, Debug, Default)]
pub struct History {
    changes: Vec<Change>,
    pub(super) lost: Vec<Lost>,
    pub(super) gaps: Vec<Gap>,
    /// Changes of a call whose start has not been read yet, by their index.
    pub(super) kept: BTreeMap<CallId, Vec<usize>>,
    pub(super) running: BTreeMap<CallId, Running>,
    plans: BTreeMap<OpId, FilesPlan>,
    left_by_restores: LeftByRestores,
    /// Where turns ended. What commands of a turn changed is recorded after that.
    pub(super) ends: BTreeMap<TurnId, Order>,
    /// The conversation of each turn that ran tools or has ended, and one of its events.
    turns: BTreeMap<TurnId, (ConversationId, Position)>,
    /// Where commands were started, and calls that may change files like them.
    pub(super) commands: Vec<(TurnId, Order)>,
    /// The journals that were read before this one.
    pub(super) inherited: Inherited,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Running {
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

    /// The order of an event of the journal that is read now: at the end, of the agent's own.
    pub const fn own(&self, seq: Seq) -> Order {
        self.inherited.own(seq)
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

    /// Where commands were started.
    pub fn commands(&self) -> impl Iterator<Item = Order> {
        self.commands.iter().map(|(_, order)| *order)
    }

    /// The conversation of a turn, and one of its events.
    pub fn turn(&self, turn: TurnId) -> Option<(ConversationId, Position)> {
        self.turns.get(&turn).copied()
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
            Body::FilesRestored(restored) => self.restored(event, restored),
            Body::TurnEnded(_) => self.turn_ended(event),
            _ => {}
        }
    }

    fn file_kept(&mut self, event: &Event, kept: &FileKept) {
        self.left_by_restores.changed(&kept.path);
        let by = match &kept.by {
            KeptBy::Call { call } => {
                let index = self.changes.len();
                self.kept.entry(call.clone()).or_default().push(index);
                ChangedBy::Call(call.clone())
            }
            KeptBy::Restore { op } => ChangedBy::Restore(*op),
        };
        let before = earlier(position(event), &kept.before);
        let after = match &by {
            ChangedBy::Restore(op) => self.planned(*op, &kept.path),
            _ => Left::Unknown,
        };
        self.changes.push(Change {
            order: self.own(event.seq),
            event: position(event),
            turn: event.turn,
            conversation: event.conversation,
            at: event.at,
            path: kept.path.clone(),
            by,
            before,
            mode_before: None,
            after,
            done: IsDone::Unknown,
            unsure: false,
            git_before: None,
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
                    } if kept == at => Some(Left::from(state)),
                    _ => None,
                });
                state.unwrap_or(Left::Unknown)
            }
            Some(RestoreTarget::Git { mode, hash, .. }) => match is_link(*mode) {
                true => Left::SymlinkOf(hash.clone()),
                false => Left::Content(hash.clone()),
            },
            Some(RestoreTarget::Mode { hash, .. }) => Left::Content(hash.clone()),
            None => Left::Unknown,
        }
    }

    /// What commands of the turn changed is not known until their scan is read. If it was never made or was purged, that
    /// stays so.
    fn turn_ended(&mut self, event: &Event) {
        let Some(turn) = event.turn else { return };
        let order = self.own(event.seq);
        self.ends.insert(turn, order);
        self.turns
            .insert(turn, (event.conversation, position(event)));
        if self.commands.last().is_some_and(|(of, _)| *of == turn) {
            self.gaps.push(Gap {
                order,
                turn,
                why: CannotRestore::NotScanned,
                more: 0,
            });
        }
    }

    fn tool_started(&mut self, event: &Event, started: &ToolStarted) {
        let order = self.own(event.seq);
        if let Some(turn) = event.turn {
            let at = (event.conversation, position(event));
            self.turns.entry(turn).or_insert(at);
        }
        if let Some(turn) = event.turn.filter(|_| started.is_scanned()) {
            self.commands.push((turn, order));
        }
        let kept = self.kept.remove(&started.call).unwrap_or_default();
        let mut lost = Vec::new();
        let mut unmatched = kept.clone();
        // From the back: a purge deletes the oldest first, so what is left of a call are its last files.
        for change in changes(started).iter().rev() {
            match self.matching(&unmatched, change) {
                Some(at) => {
                    let index = unmatched.remove(at);
                    if let Some(known) = self.changes.get_mut(index) {
                        known.after = change.left();
                    }
                }
                None => lost.push(LostFile {
                    file: change.file.map(str::to_owned),
                    path: None,
                    after: change.left(),
                }),
            }
        }
        lost.reverse();
        for lost in &lost {
            self.left_by_restores.changed_file(lost.file.as_deref());
        }
        let lost = (!lost.is_empty()).then(|| {
            self.lost.push(Lost {
                order,
                event: position(event),
                turn: event.turn,
                call: Some(started.call.clone()),
                files: lost,
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

    /// Which of these kept files a change is about. Without the name of its file, only the last one can be it: they are in
    /// the order of the call, and a path whose content stays the same is not kept.
    fn matching(&self, kept: &[usize], change: &Recorded<'_>) -> Option<usize> {
        let is_it = |index: &usize| {
            self.changes.get(*index).is_some_and(|known| {
                let is_path = |file| FileSeen::file_of(known.path.as_bytes()) == file;
                is_before(&known.before, change.before) && change.file.is_none_or(is_path)
            })
        };
        match change.file {
            Some(_) => kept.iter().rposition(is_it),
            None => kept
                .len()
                .checked_sub(1)
                .filter(|_| kept.last().is_some_and(is_it)),
        }
    }

    pub(super) fn tool_ended(&mut self, ended: &ToolEnded) {
        let Some(running) = self.running.remove(&ended.call) else {
            return;
        };
        let is_deleted = |index: &usize| {
            let change = self.changes.get(*index);
            change.is_some_and(|change| change.after == Left::Absent)
        };
        let has_failed = ended.has_failed_early() && !running.changes.iter().any(is_deleted);
        let done = match ended.outcome {
            CallOutcome::Error if has_failed => IsDone::Failed,
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
            for lost in lost.files.iter_mut().filter(|lost| lost.file.is_none()) {
                let is_it = |seen: &&FileSeen| lost.after == Left::Content(seen.content.clone());
                lost.file = ended.seen.iter().find(is_it).map(|seen| seen.file.clone());
            }
        }
    }

    pub(super) fn scanned(&mut self, event: &Event, scanned: &FilesScanned) {
        let turn = scanned.turn;
        let order = self.ends.get(&turn).copied();
        let order = order.unwrap_or_else(|| self.own(event.seq));
        self.gaps.retain(|gap| gap.turn != turn);
        match &scanned.found {
            Scan::Known { files, more } => {
                for file in files {
                    let change = of_command(event, (turn, order), file);
                    if !self.left_by_restores.has(&change) {
                        self.left_by_restores.changed(&change.path);
                        self.changes.push(change);
                    }
                }
                if *more > 0 {
                    let (why, more) = (CannotRestore::TooMany, *more);
                    self.gaps.push(Gap {
                        order,
                        turn,
                        why,
                        more,
                    });
                }
            }
            Scan::Unknown { why } => self.gaps.push(Gap {
                order,
                turn,
                why: (*why).into(),
                more: 0,
            }),
        }
    }

    fn restored(&mut self, event: &Event, restored: &FilesRestored) {
        let files = restored.files.iter();
        let mut purged: BTreeMap<&str, IsDone> = files
            .map(|file| (file.path.as_str(), is_done(&file.outcome)))
            .collect();
        let changes = self.changes.iter_mut();
        for change in changes.filter(|change| change.by == ChangedBy::Restore(restored.op)) {
            if let Some(done) = purged.remove(change.path.as_str()) {
                change.done = done;
                if done == IsDone::Yes {
                    let left = change.after.clone();
                    self.left_by_restores.restored(&change.path, left);
                }
            }
        }
        // What these paths were before is not in the journal any more.
        for (path, done) in purged {
            let after = self.planned(restored.op, path);
            match done {
                IsDone::Yes => self.left_by_restores.restored(path, after.clone()),
                IsDone::No | IsDone::Failed | IsDone::Unknown => {
                    self.left_by_restores.changed(path);
                }
            }
            let lost = LostFile {
                file: Some(FileSeen::file_of(path.as_bytes())),
                path: Some(path.to_owned()),
                after,
            };
            self.lost.push(Lost {
                order: self.own(event.seq),
                event: position(event),
                turn: event.turn,
                call: None,
                files: vec![lost],
                done,
            });
        }
    }
}

const fn is_done(outcome: &RestoredOutcome) -> IsDone {
    match outcome {
        RestoredOutcome::Restored => IsDone::Yes,
        RestoredOutcome::Conflict => IsDone::No,
        RestoredOutcome::Failed { .. } => IsDone::Unknown,
    }
}
