//! The history of files, without paths and contents: how much is kept, restores, and the turn whose commands were not
//! scanned yet.

use super::{AgentState, Turn};
use crate::event::{
    Event, FilesPurged, FilesRestoreBegan, FilesRestoreEnded, Purged, RestoreOutcome, ToolStarted,
    TurnEnded,
};
use crate::id::{OpId, Seq, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many restores can be taken back.
const UNDO_LEVELS: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// What counts towards `limits.file_history_bytes`.
    pub kept_bytes: u64,
    /// Every `file_kept` up to here has lost its body.
    pub purged_through: Seq,
    /// The restore that has begun and not ended.
    pub restoring: Option<Restore>,
    /// The restores that can be taken back, oldest first.
    undo: VecDeque<Restore>,
    /// The turn that ran commands, or during which background commands ran, and that was not scanned yet.
    pub unscanned: Option<Unscanned>,
    /// Background commands have run after the last scan.
    #[serde(default)]
    pub background: Option<Background>,
}

/// A restore of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub op: OpId,
    /// The restore that this one takes back.
    pub undo_of: Option<OpId>,
    /// Its `files_restore_began`. The plan and the kept files follow it.
    pub seq: Seq,
}

/// A turn that ran commands, or during which background commands ran. What they changed is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscanned {
    pub turn: TurnId,
    pub since: ScanSince,
    pub ended: Timestamp,
    /// Background commands were running at its end: the scan may come before they change something.
    #[serde(default)]
    pub leaves_tasks: bool,
}

/// The time from which on a scan looks for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanSince {
    /// When the turn began.
    pub began: Timestamp,
    /// Earlier than that if background commands have run after the last scan: then when the turn of that scan ended.
    pub from: Timestamp,
}

impl ScanSince {
    /// Changes of one turn.
    pub const fn turn(began: Timestamp) -> Self {
        Self { began, from: began }
    }
}

/// Background commands that have run after the last scan. What they changed since is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    /// The turn that was scanned last.
    pub turn: TurnId,
    /// When that turn ended.
    pub since: Timestamp,
}

impl Files {
    /// The restores that can be taken back, newest first.
    pub fn undo_stack(&self) -> impl ExactSizeIterator<Item = &Restore> {
        self.undo.iter().rev()
    }

    /// A restore that was in progress in another installation is not continued here, and none of its restores is taken
    /// back here: the paths are those of its files.
    pub(super) fn abandon(&mut self) {
        self.restoring = None;
        self.undo.clear();
        self.unscanned = None;
        self.background = None;
    }

    pub(super) fn keep(&mut self, bytes: u64) {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
    }

    /// Contents were deleted together with the other content of a conversation.
    pub(super) fn forget(&mut self, bytes: u64) {
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
    }

    pub(super) fn purged(&mut self, purged: FilesPurged) {
        self.forget(purged.bytes);
        self.purged_through = self.purged_through.max(purged.through);
    }

    pub(super) fn scanned(&mut self) -> bool {
        let Some(scanned) = self.unscanned.take() else {
            return false;
        };
        self.background = scanned.leaves_tasks.then_some(Background {
            turn: scanned.turn,
            since: scanned.ended,
        });
        true
    }

    pub(super) fn begin(&mut self, event: &Event, body: &FilesRestoreBegan) -> bool {
        self.keep(body.kept_bytes);
        let restore = Restore {
            op: body.op,
            undo_of: body.undo_of,
            seq: event.seq,
        };
        self.restoring.replace(restore).is_none()
    }

    pub(super) fn end(&mut self, body: &FilesRestoreEnded) -> bool {
        let Some(restore) = self.restoring.take_if(|known| known.op == body.op) else {
            return false;
        };
        match restore.undo_of {
            Some(undone) if body.outcome == RestoreOutcome::Done => {
                self.undo.retain(|known| known.op != undone);
            }
            None if body.outcome != RestoreOutcome::Conflict => self.undo.push_back(restore),
            _ => {}
        }
        while self.undo.len() > UNDO_LEVELS {
            self.undo.pop_front();
        }
        true
    }
}

impl AgentState {
    pub(super) fn start_tool(&mut self, event: &Event, body: &ToolStarted) -> bool {
        self.files.keep(body.kept_bytes());
        self.in_turn(event, |turn| turn.tool_started(body))
    }

    pub(super) fn purge(&mut self, body: &Purged) -> bool {
        if let Some(files) = body.files {
            self.files.purged(files);
            return true;
        }
        self.files.forget(body.kept_bytes);
        self.inbox.forget(body.conversation);
        self.tasks.forget(body.conversation);
        self.schedules.forget(body.conversation);
        self.tree.purged(body.conversation)
    }

    /// A turn has ended. What its commands changed is to be found, before the next turn begins, and what background
    /// commands changed since the last scan. A turn that is not shown has no changes but its own.
    pub(super) fn scan_after(&mut self, turn: &Turn, body: &TurnEnded, ended: Timestamp) {
        let is_shown = turn.compacts.is_none() && !body.withdrawn;
        let background = self.files.background;
        let looks_back = background.is_some() && is_shown;
        if !turn.ran_commands && !looks_back {
            return;
        }
        let began = turn.started_at;
        let from = background.map_or(began, |background| background.since.min(began));
        self.files.unscanned = Some(Unscanned {
            turn: turn.id,
            since: ScanSince { began, from },
            ended,
            leaves_tasks: self.tasks.running().len() > 0,
        });
    }
}
