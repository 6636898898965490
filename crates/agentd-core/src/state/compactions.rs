//! Compactions that somebody asked for, and how the latest ones went.

use crate::event::TurnStatus;
use crate::id::OpId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Those that are remembered: an older one that is asked for again counts as new.
const KEPT: usize = 64;

/// What became of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionOutcome {
    Compacted,
    /// There was nothing to shorten.
    Nothing,
    Interrupted,
    Failed,
    Limited,
    Lost,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compactions {
    asked: Option<OpId>,
    over: VecDeque<(OpId, CompactionOutcome)>,
}

impl Compactions {
    /// The one that waits, or is under way.
    pub const fn asked(&self) -> Option<OpId> {
        self.asked
    }

    pub fn outcome(&self, op: OpId) -> Option<CompactionOutcome> {
        let mut over = self.over.iter().rev();
        over.find_map(|(known, outcome)| (*known == op).then_some(*outcome))
    }

    /// Whether one was asked for under this op.
    pub fn is_known(&self, op: OpId) -> bool {
        self.asked == Some(op) || self.outcome(op).is_some()
    }

    pub(super) fn ask(&mut self, op: OpId) -> bool {
        self.asked.replace(op).is_none()
    }

    /// How its turn ended; `made` where a summary came of it.
    pub(super) fn turn_ended(&mut self, op: OpId, status: TurnStatus, made: bool) {
        let outcome = match (status, made) {
            (_, true) => CompactionOutcome::Compacted,
            (TurnStatus::Completed, _) => CompactionOutcome::Nothing,
            (TurnStatus::Interrupted, _) => CompactionOutcome::Interrupted,
            (TurnStatus::Failed, _) => CompactionOutcome::Failed,
            (TurnStatus::Limited, _) => CompactionOutcome::Limited,
            (TurnStatus::Lost, _) => CompactionOutcome::Lost,
        };
        if self.asked == Some(op) {
            self.close(outcome);
        }
    }

    /// There is nobody to carry it out, or nothing to carry it out on.
    pub(super) fn drop_asked(&mut self) {
        self.close(CompactionOutcome::Interrupted);
    }

    fn close(&mut self, outcome: CompactionOutcome) {
        if let Some(op) = self.asked.take() {
            self.over.push_back((op, outcome));
            while self.over.len() > KEPT {
                self.over.pop_front();
            }
        }
    }
}
