//! Which events the user is notified of.

use super::routed::{Part, Routed};
use crate::catalog::Asked;
use crate::event::{Body, Event, FailureClass, LimitKind, PauseReason, PausedBecause, TurnStatus};
use crate::id::ScheduleId;
use crate::spec::Topic;
use serde::Serialize;

/// A notification, before it is known who gets it. It contains no text of a conversation and no argument of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub topic: Topic,
    pub asked: Asked,
    pub detail: Detail,
}

/// What the topic alone does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReason>,
    /// The budgets of which 80 % is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<LimitKind>,
    /// The schedule that cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
}

/// Folds one more event of any agent. `reached` are the budgets of which the event used the last part of 80 %.
pub fn of_event(routed: &mut Routed, event: &Event, reached: &[LimitKind]) -> Option<Notice> {
    let part = routed.apply(event, |prompt| prompt.notify);
    let mut detail = Detail::default();
    let topic = match &event.body {
        Body::TurnEnded(ended) if ended.compacts || ended.withdrawn => return None,
        Body::TurnEnded(ended) => {
            detail.limit = ended.limit;
            detail.failure = ended.failure;
            match ended.status {
                TurnStatus::Completed => Topic::Completed,
                TurnStatus::Failed => Topic::Failed,
                TurnStatus::Limited => Topic::Limited,
                TurnStatus::Lost => Topic::Lost,
                TurnStatus::Interrupted => Topic::Interrupted,
            }
        }
        Body::AgentFailed(_) => Topic::Failed,
        Body::ApprovalRequested(_) => Topic::Approval,
        Body::TurnPaused(paused) => {
            detail.paused = Some(paused.reason);
            Topic::Approval
        }
        Body::Quarantined(_) => Topic::Trouble,
        Body::RequestEnded(_) if !reached.is_empty() => {
            detail.budgets = reached.to_vec();
            Topic::Budget
        }
        // It will not fire again before the user looks at it.
        Body::SchedulePaused(paused) if paused.why == PausedBecause::CannotRun => {
            detail.schedule = Some(paused.schedule);
            Topic::Failed
        }
        _ => return None,
    };
    let asked = match part {
        Part::Ours => Asked::Yes,
        Part::Other => Asked::No,
    };
    Some(Notice {
        topic,
        asked,
        detail,
    })
}

/// Whether the user is told of it also if the agent is a subagent: its parent is told of everything else.
pub const fn concerns_user(topic: Topic) -> bool {
    matches!(topic, Topic::Approval | Topic::Trouble)
}

#[cfg(test)]
mod tests;
