//! The agent's schedules: what they do, when they are due next, and the due time that was handled last. No due time is
//! computed here: events contain them, so another time-zone database folds to the same state.

use super::AgentState;
use crate::event::{
    Event, FiringOutcome, MissedPolicy, Mode, OverlapPolicy, PausedBecause, ScheduleAction,
    ScheduleAdded, ScheduleFired, ScheduleMoved, SchedulePaused, ScheduleResumed, ScheduleRule,
};
use crate::id::{ConversationId, PromptId, ScheduleId, Seq};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedules {
    /// In the order in which they were added.
    all: Vec<Schedule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: ScheduleId,
    pub name: String,
    pub rule: ScheduleRule,
    pub action: ScheduleAction,
    pub missed: MissedPolicy,
    pub overlap: OverlapPolicy,
    pub added_at: Timestamp,
    /// The event before the text of its prompt.
    pub seq: Seq,
    /// The conversation in which that text is recorded.
    pub conversation: ConversationId,
    /// The next due time that was not handled. `None` if it is never due again.
    pub next: Option<Timestamp>,
    pub paused: Option<PausedBecause>,
    /// The latest due time that was handled. Only later ones are handled.
    pub last_due: Option<Timestamp>,
    pub last: Option<LastFiring>,
    /// The prompt that it queued last.
    pub prompt: Option<PromptId>,
}

/// The last firing of a schedule, made or skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFiring {
    /// `None` if the user ran the schedule.
    pub due: Option<Timestamp>,
    pub at: Timestamp,
    pub outcome: FiringOutcome,
}

/// What a schedule waits for when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleWaits {
    /// The agent is stopped, held or archived.
    Stopped,
    /// The agent has failed.
    Failed,
    /// The agent's queue is full.
    QueueFull,
    /// A turn or a reset is in progress, and the schedule begins a fresh conversation.
    Turn,
}

impl Schedules {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Schedule> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, schedule: ScheduleId) -> Option<&Schedule> {
        self.all.iter().find(|known| known.id == schedule)
    }

    pub fn named(&self, name: &str) -> Option<&Schedule> {
        self.all.iter().find(|known| known.name == name)
    }

    fn get_mut(&mut self, schedule: ScheduleId) -> Option<&mut Schedule> {
        self.all.iter_mut().find(|known| known.id == schedule)
    }

    /// Returns false if the schedule or its name exists already.
    pub(super) fn add(&mut self, event: &Event, body: &ScheduleAdded) -> bool {
        if self.get(body.schedule).is_some() || self.named(&body.name).is_some() {
            return false;
        }
        self.all.push(Schedule {
            id: body.schedule,
            name: body.name.clone(),
            rule: body.rule.clone(),
            action: body.action,
            missed: body.missed,
            overlap: body.overlap,
            added_at: event.at,
            seq: event.seq,
            conversation: event.conversation,
            next: body.next,
            paused: None,
            last_due: None,
            last: None,
            prompt: None,
        });
        true
    }

    pub(super) fn move_text(&mut self, event: &Event, body: &ScheduleMoved) -> bool {
        let Some(known) = self.get_mut(body.schedule) else {
            return false;
        };
        known.seq = event.seq;
        known.conversation = event.conversation;
        true
    }

    pub(super) fn pause(&mut self, body: &SchedulePaused) -> bool {
        let Some(known) = self.get_mut(body.schedule) else {
            return false;
        };
        known.paused = Some(body.why);
        true
    }

    /// All of them, unless the user paused them before.
    pub(super) fn pause_all(&mut self, why: PausedBecause) {
        for known in &mut self.all {
            known.paused.get_or_insert(why);
        }
    }

    pub(super) fn resume(&mut self, body: &ScheduleResumed) -> bool {
        let Some(known) = self.get_mut(body.schedule) else {
            return false;
        };
        known.paused = None;
        known.next = body.next;
        true
    }

    pub(super) fn remove(&mut self, schedule: ScheduleId) -> bool {
        let before = self.all.len();
        self.all.retain(|known| known.id != schedule);
        self.all.len() < before
    }

    /// Returns false if the due time, or a later one, was handled before.
    pub(super) fn fired(&mut self, event: &Event, body: &ScheduleFired) -> bool {
        let Some(known) = self.get_mut(body.schedule) else {
            return false;
        };
        if let Some(due) = body.due {
            if known.last_due.is_some_and(|last| due <= last) {
                return false;
            }
            known.last_due = Some(due);
            known.next = body.next;
        }
        known.last = Some(LastFiring {
            due: body.due,
            at: event.at,
            outcome: body.outcome,
        });
        if let FiringOutcome::Fired {
            prompt: Some(prompt),
            ..
        } = body.outcome
        {
            known.prompt = Some(prompt);
        }
        true
    }

    /// The texts of a conversation were purged, with the prompts of the schedules that were not moved. Those are gone.
    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.all
            .retain(|known| !known.action.has_prompt() || known.conversation != conversation);
    }
}

impl AgentState {
    /// When a schedule of the agent must be handled next, if nothing else happens until then.
    pub fn schedule_due_at(&self) -> Option<Timestamp> {
        let all = self.schedules.iter();
        all.filter_map(|schedule| self.due_at(schedule)).min()
    }

    /// The same for one schedule. `None` while it has to wait.
    pub fn due_at(&self, schedule: &Schedule) -> Option<Timestamp> {
        match schedule.paused.is_some() || self.schedule_waits(schedule).is_some() {
            true => None,
            false => schedule.next,
        }
    }

    /// Why a schedule does not fire now even if it is due. Its due times are missed ones meanwhile.
    pub fn schedule_waits(&self, schedule: &Schedule) -> Option<ScheduleWaits> {
        let most = self.spec.limits.max_queue as usize;
        let is_full = || self.inbox.waiting().len() >= most;
        let is_here = self.mode == Mode::Persistent && !self.archived && !self.is_held();
        if self.stopped || !is_here {
            Some(ScheduleWaits::Stopped)
        } else if self.failed.is_some() {
            Some(ScheduleWaits::Failed)
        } else if self.overlaps(schedule) {
            // It is skipped at its due time.
            None
        } else if schedule.action.has_prompt() && is_full() {
            Some(ScheduleWaits::QueueFull)
        } else if schedule.action.resets() && !self.is_between_turns() {
            Some(ScheduleWaits::Turn)
        } else {
            None
        }
    }

    /// Whether a firing now would be skipped, because the prompt of the one before is not answered yet.
    pub fn overlaps(&self, schedule: &Schedule) -> bool {
        let is_open = |prompt: PromptId| {
            let turn = self.turn.as_ref();
            let is_taken = turn.is_some_and(|turn| turn.prompts.contains(&prompt));
            is_taken || self.inbox.get(prompt).is_some()
        };
        schedule.overlap == OverlapPolicy::Skip && schedule.prompt.is_some_and(is_open)
    }
}
