//! Background tasks, and the questions that wait for an answer.

use crate::event::{ApprovalAnswered, ApprovalRequested, Decision, Event, TaskEnded, TaskStarted};
use crate::id::{ApprovalId, BootId, CallId, ConversationId, TaskId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A background task that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub call: CallId,
    pub tool: String,
    pub boot: BootId,
    pub conversation: ConversationId,
    pub started_at: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    running: BTreeMap<TaskId, Task>,
    ended: u64,
}

impl Tasks {
    pub fn running(&self) -> impl ExactSizeIterator<Item = (&TaskId, &Task)> {
        self.running.iter()
    }

    pub const fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn start(&mut self, event: &Event, body: &TaskStarted) {
        self.running.insert(
            body.task,
            Task {
                call: body.call.clone(),
                tool: body.tool.clone(),
                boot: body.boot,
                conversation: event.conversation,
                started_at: event.at,
            },
        );
    }

    pub(super) fn end(&mut self, body: &TaskEnded) -> bool {
        let known = self.running.remove(&body.task).is_some();
        if known {
            self.ended = self.ended.saturating_add(1);
        }
        known
    }
}

/// A question about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub call: CallId,
    pub turn: Option<TurnId>,
    pub conversation: ConversationId,
    pub asked_at: Timestamp,
    /// None while it waits.
    pub decision: Option<Decision>,
}

/// Questions of calls that have no result yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    open: BTreeMap<ApprovalId, Approval>,
}

impl Approvals {
    pub fn iter(&self) -> impl Iterator<Item = (&ApprovalId, &Approval)> {
        self.open.iter()
    }

    pub fn waiting(&self) -> impl Iterator<Item = (&ApprovalId, &Approval)> {
        self.open
            .iter()
            .filter(|(_, approval)| approval.decision.is_none())
    }

    /// The question about this call, answered or not.
    pub fn of_call(&self, turn: TurnId, call: &CallId) -> Option<&Approval> {
        self.open
            .values()
            .find(|approval| approval.turn == Some(turn) && approval.call == *call)
    }

    pub(super) fn request(&mut self, event: &Event, body: &ApprovalRequested) {
        self.open.insert(
            body.approval,
            Approval {
                call: body.call.clone(),
                turn: event.turn,
                conversation: event.conversation,
                asked_at: event.at,
                decision: None,
            },
        );
    }

    pub(super) fn answer(&mut self, body: &ApprovalAnswered) -> bool {
        match self.open.get_mut(&body.approval) {
            Some(approval) if approval.decision.is_none() => {
                approval.decision = Some(body.decision);
                true
            }
            _ => false,
        }
    }

    pub(super) fn withdraw(&mut self, approval: ApprovalId) -> bool {
        self.open.remove(&approval).is_some()
    }

    /// The call has its result: there is nothing left to ask.
    pub(super) fn withdraw_for(&mut self, call: &CallId) {
        self.open.retain(|_, approval| approval.call != *call);
    }

    pub(super) fn end_turn(&mut self, turn: TurnId) {
        self.open.retain(|_, approval| approval.turn != Some(turn));
    }
}
