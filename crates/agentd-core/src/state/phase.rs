//! What an agent is doing, as one word.

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
