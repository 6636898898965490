//! The due time that is handled next, and the append that handles it.

use super::MOST_CAUGHT_UP;
use super::rule::RuleError;
use crate::begin::Line;
use crate::event::{
    Body, FiringOutcome, MissedPolicy, Note, Prompt, PromptMode, PromptQueued, ResetBegan,
    ScheduleFired, SkippedBecause,
};
use crate::id::ScheduleId;
use crate::refused::Refused;
use crate::reset::{self, Begin};
use crate::state::{AgentState, Schedule};
use crate::time::Timestamp;

/// A due time that was handled later than this is a missed one.
const LATE_MS: u64 = 60_000;

/// A due time to be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    pub schedule: ScheduleId,
    pub due: Timestamp,
    pub verdict: Verdict,
    /// How many earlier due times this one stands for.
    pub missed: u64,
    pub next: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Act,
    Skip(SkippedBecause),
}

impl Firing {
    /// The event that handles the due time.
    pub const fn fired(&self, outcome: FiringOutcome) -> ScheduleFired {
        ScheduleFired {
            schedule: self.schedule,
            due: Some(self.due),
            outcome,
            missed: self.missed,
            next: self.next,
        }
    }
}

/// The due time that is handled next, if one is due. Of several schedules, the one that has been due for the longest time
/// comes first; of equal ones, the one that was added first. An error names the schedule whose rule has no due times any
/// more, for instance because a newer time-zone database lacks its zone.
pub fn next_firing(
    state: &AgentState,
    now: Timestamp,
) -> Option<Result<Firing, (ScheduleId, RuleError)>> {
    let all = state.schedules.iter();
    let due = all.filter_map(|schedule| {
        let at = state.due_at(schedule)?;
        (at <= now).then_some((at, schedule))
    });
    let (first, schedule) = due.min_by_key(|(at, _)| *at)?;
    let firing = firing_of(state, schedule, first, now);
    Some(firing.map_err(|error| (schedule.id, error)))
}

fn firing_of(
    state: &AgentState,
    schedule: &Schedule,
    first: Timestamp,
    now: Timestamp,
) -> Result<Firing, RuleError> {
    let due = schedule.rule.due_until(first, now)?;
    let oldest = due.latest.front().copied().unwrap_or(first);
    let latest = due.latest.back().copied().unwrap_or(first);
    let second = due.latest.get(1).copied().or(due.next);
    let of = |due: Timestamp, verdict, missed, next| Firing {
        schedule: schedule.id,
        due,
        verdict,
        missed,
        next,
    };
    let more = due.total.saturating_sub(1);
    if state.overlaps(schedule) {
        let verdict = Verdict::Skip(SkippedBecause::Overlap);
        return Ok(of(latest, verdict, more, due.next));
    }
    let missed = Verdict::Skip(SkippedBecause::Missed);
    Ok(match schedule.missed {
        MissedPolicy::Once => of(latest, Verdict::Act, more, due.next),
        MissedPolicy::Skip if now.since(latest) > LATE_MS => of(latest, missed, more, due.next),
        MissedPolicy::Skip => of(latest, Verdict::Act, more, due.next),
        // The oldest ones are skipped together, up to the one before those that are caught up.
        MissedPolicy::All if due.total > MOST_CAUGHT_UP as u64 => {
            of(oldest, missed, more - MOST_CAUGHT_UP as u64, second)
        }
        MissedPolicy::All => of(oldest, Verdict::Act, 0, second),
    })
}

/// The idempotency key of the prompt of a firing: one for each due time.
pub fn key(schedule: ScheduleId, due: Timestamp) -> String {
    format!("schedule:{schedule}:{}", due.as_millis())
}

/// The append of a firing: the due time is handled, and the reset begins and the prompt is queued in the same commit. The
/// reset comes first, so that the prompt belongs to the new conversation.
pub fn events(
    state: &AgentState,
    fired: ScheduleFired,
    order: Option<ResetBegan>,
    prompt: Option<Prompt>,
) -> Result<Vec<Line>, Refused> {
    let current = state.tree.current().ok_or(Refused::NoConversation)?;
    let key = fired.due.map(|due| key(fired.schedule, due));
    let name = state.schedules.get(fired.schedule);
    let name = name.map_or("", |schedule| schedule.name.as_str());
    let text = format!("schedule {name}");
    let mut lines: Vec<Line> = vec![(current, fired.into())];
    if let Some(order) = order
        && let Begin::Append(line) = reset::begin(state, order)?
    {
        lines.push(line);
        lines.push((current, Note { about: None, text }.into()));
    }
    if let Some(prompt) = prompt {
        let queued = PromptQueued {
            prompt: prompt.prompt,
            key,
            mode: PromptMode::Queue,
        };
        let bodies: [Body; 2] = [queued.into(), prompt.into()];
        lines.extend(bodies.into_iter().map(|body| (current, body)));
    }
    Ok(lines)
}

/// The next due times, for display. None if the schedule does not fire.
pub fn next_times(schedule: &Schedule, most: usize) -> Vec<Timestamp> {
    let mut times = Vec::new();
    let mut next = match schedule.paused {
        Some(_) => None,
        None => schedule.next,
    };
    while let Some(at) = next.filter(|_| times.len() < most) {
        times.push(at);
        next = schedule.rule.next_after(at).unwrap_or_default();
    }
    times
}
