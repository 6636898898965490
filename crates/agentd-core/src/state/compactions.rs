//! Compactions that the user requested, and the outcomes of the latest ones.

use crate::event::TurnStatus;
use crate::id::OpId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many are remembered. An older one that is requested again counts as new.
const KEPT: usize = 64;

/// The outcome of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionOutcome {
    Compacted,
    /// There was nothing to compact.
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
    /// The requested compaction that is queued or in progress.
    pub const fn asked(&self) -> Option<OpId> {
        self.asked
    }

    pub fn outcome(&self, op: OpId) -> Option<CompactionOutcome> {
        let mut over = self.over.iter().rev();
        over.find_map(|(known, outcome)| (*known == op).then_some(*outcome))
    }

    /// Whether a compaction was requested under this op.
    pub fn is_known(&self, op: OpId) -> bool {
        self.asked == Some(op) || self.outcome(op).is_some()
    }

    pub(super) fn ask(&mut self, op: OpId) -> bool {
        self.asked.replace(op).is_none()
    }

    /// The end of its turn; `made` if it produced a summary.
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

    /// No process can perform it, or its conversation is no longer current.
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
