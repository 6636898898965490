//! The reset in progress, and the outcomes of the latest ones.

use super::AgentState;
use crate::event::{
    Event, ResetBegan, ResetEnded, ResetRefusal, ResetStep, ResetStepped, ResetTo, ResetWithdrawn,
};
use crate::id::{ConversationId, OpId, Seq, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How many resets are remembered. An older one that is requested again counts as new.
const KEPT: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    pub order: ResetBegan,
    /// The event that began it. Prompts that were accepted before it stay with the old conversation.
    pub began: Seq,
    pub old: ConversationId,
    /// The last completed step.
    pub done: Option<ResetStep>,
}

/// The outcome of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ended {
        began: Seq,
        ended: Seq,
        old: ConversationId,
        new: ConversationId,
    },
    Withdrawn {
        began: Seq,
        ended: Seq,
        why: ResetRefusal,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resets {
    under_way: Option<Box<Reset>>,
    over: VecDeque<(OpId, ResetTo, Outcome)>,
    /// The position at which the log of the current conversation begins, if it was cleared.
    cleared: Option<Seq>,
    /// The same for each conversation that was left or entered by a reset: undo and redo restore it.
    #[serde(default)]
    logs: BTreeMap<ConversationId, Seq>,
    /// The position at which the agent requested a reset at the end of its turn.
    #[serde(default)]
    scheduled: Option<Seq>,
    /// When an automatic reset was refused or undone, and the last turn before that.
    #[serde(default)]
    refused: Option<(Timestamp, Option<TurnId>)>,
}

impl Resets {
    pub fn under_way(&self) -> Option<&Reset> {
        self.under_way.as_deref()
    }

    pub fn outcome(&self, op: OpId) -> Option<Outcome> {
        let mut over = self.over.iter().rev();
        over.find_map(|(known, _, outcome)| (*known == op).then_some(*outcome))
    }

    /// The kind of reset that was requested under this op, if it has begun or ended.
    pub fn asked_for(&self, op: OpId) -> Option<&ResetTo> {
        let over = self.over.iter().rev();
        let over = over.map(|(known, to, _)| (*known, to));
        let under_way = self.under_way();
        let under_way = under_way.map(|reset| (reset.order.op, &reset.order.to));
        let mut all = under_way.into_iter().chain(over);
        all.find_map(|(known, to)| (known == op).then_some(to))
    }

    /// Where the log begins, unless all of it is requested.
    pub const fn log_begins(&self) -> Option<Seq> {
        self.cleared
    }

    /// The position of the agent's own request for a reset that has not begun.
    pub const fn scheduled(&self) -> Option<Seq> {
        self.scheduled
    }

    pub(super) fn refused_after(&self) -> Option<TurnId> {
        self.refused.and_then(|(_, turn)| turn)
    }

    pub(super) fn refused_at(&self) -> Option<Timestamp> {
        self.refused.map(|(at, _)| at)
    }

    /// The conversation should stay as it is after that turn. Leaving it requires another reason.
    pub(super) const fn refuse(&mut self, event: &Event, after: Option<TurnId>) {
        self.refused = Some((event.at, after));
    }

    pub(super) const fn schedule(&mut self, event: &Event) {
        self.scheduled = Some(event.seq);
    }

    /// A reset that was in progress in another installation does not continue here.
    pub(super) fn abandon(&mut self) {
        self.under_way = None;
        self.scheduled = None;
    }

    pub(super) fn begin(&mut self, event: &Event, body: &ResetBegan) -> bool {
        let was_free = self.under_way.is_none();
        self.scheduled = None;
        self.under_way = Some(Box::new(Reset {
            order: body.clone(),
            began: event.seq,
            old: event.conversation,
            done: None,
        }));
        was_free
    }

    pub(super) fn step(&mut self, event: &Event, body: &ResetStepped) -> bool {
        let reset = self.under_way.as_mut();
        let is_next =
            |reset: &&mut Box<Reset>| reset.order.op == body.op && reset.done < Some(body.step);
        let Some(reset) = reset.filter(is_next) else {
            return false;
        };
        reset.done = Some(body.step);
        if body.step == ResetStep::Switch {
            let new = event.conversation;
            self.cleared = match reset.order.to {
                ResetTo::Undo | ResetTo::Redo => self.logs.get(&new).copied(),
                _ if reset.order.clear_log => Some(event.seq),
                ResetTo::Fresh | ResetTo::Rewind { .. } => self.cleared,
            };
            self.logs.extend(self.cleared.map(|begins| (new, begins)));
        }
        true
    }

    /// `after` is the last turn.
    pub(super) fn withdraw(
        &mut self,
        event: &Event,
        body: &ResetWithdrawn,
        after: Option<TurnId>,
    ) -> bool {
        let source = self.under_way().map(|reset| reset.order.source);
        if source.is_some_and(|source| !source.is_user()) {
            self.refuse(event, after);
        }
        let (ended, why) = (event.seq, body.why);
        self.close(body.op, |began| Outcome::Withdrawn { began, ended, why })
    }

    pub(super) fn end(&mut self, event: &Event, body: &ResetEnded) -> bool {
        let (ended, old, new) = (event.seq, body.old, body.new);
        self.close(body.op, |began| Outcome::Ended {
            began,
            ended,
            old,
            new,
        })
    }

    fn close(&mut self, op: OpId, outcome: impl FnOnce(Seq) -> Outcome) -> bool {
        let reset = self.under_way.take_if(|reset| reset.order.op == op);
        let Some(reset) = reset else { return false };
        let outcome = outcome(reset.began);
        self.over.push_back((op, reset.order.to, outcome));
        while self.over.len() > KEPT {
            self.over.pop_front();
        }
        true
    }
}

impl AgentState {
    /// Whether new turns must not begin: the agent is stopped, a reset is in progress or due, or files are being
    /// restored.
    pub fn is_held_back(&self) -> bool {
        let is_restoring = self.files.restoring.is_some();
        self.stopped
            || is_restoring
            || self.resets.under_way().is_some()
            || self.reset_due().is_some()
    }

    /// Whether the running turn must end. A reset first runs hooks, which may refuse it.
    pub fn ends_turn(&self) -> bool {
        let reset = self.resets.under_way();
        self.stopped || reset.is_some_and(|reset| reset.done >= Some(ResetStep::PreReset))
    }
}

impl AgentState {
    pub(super) fn step_reset(&mut self, event: &Event, body: &ResetStepped) -> bool {
        let is_known = self.resets.step(event, body);
        if is_known && body.step == ResetStep::Switch {
            self.compactions.drop_asked();
            // The failure belongs to the conversation that was sealed, like its turns.
            self.failed = None;
        }
        is_known
    }
}
