//! What an agent is doing, as one word.

use super::AgentState;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Idle,
    Running,
    Waiting,
    AwaitingApproval,
    Resetting,
    Stopped,
    Failed,
}

impl Phase {
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Running,
        Self::Waiting,
        Self::AwaitingApproval,
        Self::Resetting,
        Self::Stopped,
        Self::Failed,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Resetting => "resetting",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl AgentState {
    /// What the agent is doing, according to its journal.
    pub fn phase(&self) -> Phase {
        if self.is_held() {
            return Phase::Stopped;
        }
        if self.resets.under_way().is_some() || self.reset_due().is_some() {
            return Phase::Resetting;
        }
        // Its parent has not received its report: a new daemon must deliver it.
        if self.owes_report() && self.turn.is_none() {
            return Phase::Running;
        }
        // It is still stopping until its turn has ended.
        if self.stopped && self.turn.is_none() {
            return Phase::Stopped;
        }
        if self.failed.is_some() {
            return Phase::Failed;
        }
        match &self.turn {
            Some(turn) if turn.paused.is_some() => Phase::Waiting,
            Some(_) if self.approvals.waiting().next().is_some() => Phase::AwaitingApproval,
            Some(_) => Phase::Running,
            // A prompt or a compaction is queued.
            None if self.has_asked() => Phase::Running,
            None => match self.last_turn_here() {
                Some(turn) if turn.is_trouble() => Phase::Failed,
                _ => Phase::Idle,
            },
        }
    }
}
