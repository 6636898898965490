//! The agent's plan, and whether the model still sees it.

use super::{Entry, Item, Located, Window};
use crate::event::{Event, Notice, NoticeCause, PlanSet, Position};
use serde::{Deserialize, Serialize};

/// The newest plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownPlan {
    pub plan: Located<PlanSet>,
    /// The item that shows it to the model: the reply with the call that set it, or a reminder.
    pub shown_by: Position,
}

/// A plan in a skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanBone {
    pub source: Position,
    pub shown_by: Position,
}

impl Window {
    /// The plan of the conversation; none if the model has set none, or an empty one.
    pub fn plan(&self) -> Option<&PlanSet> {
        let known = self.plan.as_ref()?;
        Some(&known.plan.value).filter(|plan| !plan.steps.is_empty())
    }

    /// A plan with steps that are left, if a summary has replaced what showed it to the model.
    pub fn lost_plan(&self) -> Option<&PlanSet> {
        let shown_by = self.plan.as_ref()?.shown_by;
        let is_shown = self.items.iter().any(|item| item.source == shown_by);
        self.plan().filter(|plan| !is_shown && !plan.is_finished())
    }

    pub(super) fn set_plan(&mut self, event: &Event, plan: &PlanSet) {
        let source = event.position();
        self.plan = Some(KnownPlan {
            plan: Located {
                source,
                value: plan.clone(),
            },
            shown_by: self.newest_reply_source().unwrap_or(source),
        });
    }

    fn newest_reply_source(&self) -> Option<Position> {
        let is_reply = |item: &&Item| matches!(item.entry, Entry::Reply { .. });
        let reply = self.items.iter().rev().find(is_reply);
        reply.map(|item| item.source)
    }

    pub(super) fn reminded_of_plan(&mut self, at: Position, notice: &Notice) {
        if let (NoticeCause::Plan, Some(known)) = (notice.cause, self.plan.as_mut()) {
            known.shown_by = at;
        }
    }

    pub(super) fn plan_bone(&self) -> Option<PlanBone> {
        let known = self.plan.as_ref()?;
        Some(PlanBone {
            source: known.plan.source,
            shown_by: known.shown_by,
        })
    }
}
