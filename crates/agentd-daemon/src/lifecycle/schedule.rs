//! The schedules of agents: add, pause, resume, run and remove. Core decides when they are due; [`due`] fires them.

mod due;
mod shown;
mod text;

pub use due::watch;
pub use shown::{list, list_all};
pub use text::{carried, carry};

use super::ops::Asked;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::{clock, prompt};
use agentd_client::api::{self, AddSchedule, When};
use agentd_core::event::{
    Body, MissedPolicy, Mode, OpReceipt, OverlapPolicy, PausedBecause, ScheduleAdded,
    ScheduleFired, SchedulePaused, SchedulePrompt, ScheduleRemoved, ScheduleResumed, ScheduleRule,
};
use agentd_core::id::ScheduleId;
use agentd_core::message::Block;
use agentd_core::schedule::{self, MOST_SCHEDULES, RuleError};
use agentd_core::state::{AgentState, Made, Schedule};
use agentd_core::time::Timestamp;

pub async fn add(handle: &AgentHandle, ask: AddSchedule, asked: &Asked) -> Result<api::Schedule> {
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)? {
        let schedule = receipt(made);
        check_text(&guard, schedule, ask.prompt.as_deref()).await?;
        return one(&guard, schedule).await;
    }
    check_may_act(&guard)?;
    if guard.state.mode == Mode::Oneshot {
        let what = "a one-shot agent takes one prompt and has no schedules";
        return Err(Error::new(Kind::Refused, what).next("create a persistent agent"));
    }
    if guard.state.schedules.len() >= MOST_SCHEDULES {
        let what = format!("the agent has {MOST_SCHEDULES} schedules already");
        let next = format!("agentd schedule rm {} SCHEDULE", guard.state.name);
        return Err(Error::new(Kind::Conflict, what).next(next));
    }
    let blocks = blocks_of(&ask)?;
    let overlap = overlap_of(&ask)?;
    let name = name_of(&guard.state, ask.name)?;
    let now = clock::now();
    let rule = rule_of(ask.when, now);
    let first = rule.first_after(now).map_err(|error| invalid(&error))?;
    let schedule = ScheduleId::new(clock::new_id());
    let added = ScheduleAdded {
        schedule,
        name,
        rule,
        action: ask.action,
        missed: ask.missed,
        overlap,
        next: Some(first),
    };
    // The text is right after the event that it belongs to.
    let bodies = [Body::from(added)].into_iter();
    let text = blocks.map(|blocks| SchedulePrompt { schedule, blocks }.into());
    let op = asked.with(OpReceipt::Schedule { schedule });
    guard.note(bodies.chain(text).chain(op)).await?;
    guard.reconcile();
    one(&guard, schedule).await
}

/// The blocks of the prompt; none if the schedule only resets.
fn blocks_of(ask: &AddSchedule) -> Result<Option<Vec<Block>>> {
    match (&ask.prompt, ask.action.has_prompt()) {
        (Some(text), true) => prompt::text_blocks(text).map(Some),
        (None, false) => Ok(None),
        (None, true) => Err(Error::new(Kind::Invalid, "the schedule has no prompt")),
        (Some(_), false) => {
            let what = "a schedule that only resets has no prompt";
            Err(Error::new(Kind::Invalid, what).next("use `fresh` for a reset before the prompt"))
        }
    }
}

/// Missed due times that are caught up are queued one after the other, so an overlap is what is asked for.
fn overlap_of(ask: &AddSchedule) -> Result<OverlapPolicy> {
    match (ask.missed, ask.overlap) {
        (MissedPolicy::All, Some(OverlapPolicy::Skip)) => {
            let what = "all missed due times cannot be caught up if overlaps are skipped";
            Err(Error::new(Kind::Invalid, what).next("use the overlap policy `queue`"))
        }
        (MissedPolicy::All, _) => Ok(OverlapPolicy::Queue),
        (_, overlap) => Ok(overlap.unwrap_or_default()),
    }
}

/// The name that was given, or the first free one of `s1`, `s2`, …
fn name_of(state: &AgentState, given: Option<String>) -> Result<String> {
    let Some(name) = given else {
        let free = (1..=MOST_SCHEDULES).map(|n| format!("s{n}"));
        let mut free = free.filter(|name| state.schedules.named(name).is_none());
        return free
            .next()
            .ok_or_else(|| Error::new(Kind::Conflict, "no name is free"));
    };
    if !schedule::is_name(&name) {
        let what = format!("`{name}` cannot be the name of a schedule");
        let next = "use letters, digits, `-`, `_` and `.`";
        return Err(Error::new(Kind::Invalid, what).next(next));
    }
    if state.schedules.named(&name).is_some() {
        let what = format!("`{}` has a schedule `{name}` already", state.name);
        let next = format!("agentd schedule rm {} {name}", state.name);
        return Err(Error::new(Kind::Conflict, what).next(next));
    }
    Ok(name)
}

fn rule_of(when: When, now: Timestamp) -> ScheduleRule {
    match when {
        When::Cron { expression, zone } => ScheduleRule::Cron { expression, zone },
        When::At { at, zone } => ScheduleRule::At { at, zone },
        When::Every { every_ms } => ScheduleRule::Every {
            every_ms,
            from: now,
        },
    }
}

fn invalid(error: &RuleError) -> Error {
    Error::new(Kind::Invalid, error.to_string()).next(error.next())
}

pub async fn pause(handle: &AgentHandle, which: &str, asked: &Asked) -> Result<api::Schedule> {
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)? {
        return one(&guard, receipt(made)).await;
    }
    guard.check_active()?;
    let schedule = find(&guard.state, which)?.id;
    let why = PausedBecause::User;
    let bodies = [Body::from(SchedulePaused { schedule, why })].into_iter();
    let op = asked.with(OpReceipt::Schedule { schedule });
    guard.note(bodies.chain(op)).await?;
    guard.reconcile();
    one(&guard, schedule).await
}

/// Due times in the past stay in the past: the next one is the first after now, and after the last one that was handled.
pub async fn resume(handle: &AgentHandle, which: &str, asked: &Asked) -> Result<api::Schedule> {
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)? {
        return one(&guard, receipt(made)).await;
    }
    check_may_act(&guard)?;
    let known = find(&guard.state, which)?;
    let schedule = known.id;
    let mut bodies = Vec::new();
    if known.paused.is_some() {
        let now = clock::now();
        let after = known.last_due.map_or(now, |last| last.max(now));
        let next = known.rule.next_after(after);
        let next = next.map_err(|error| invalid(&error))?;
        if next.is_none() {
            let what = format!("schedule `{}` is never due again", known.name);
            return Err(Error::new(Kind::Conflict, what).next("add another one"));
        }
        bodies.push(Body::from(ScheduleResumed { schedule, next }));
    }
    bodies.extend(asked.with(OpReceipt::Schedule { schedule }));
    if !bodies.is_empty() {
        guard.note(bodies).await?;
        guard.reconcile();
    }
    one(&guard, schedule).await
}

/// Fires a schedule now. Its due times stay as they are.
pub async fn run(handle: &AgentHandle, which: &str, asked: &Asked) -> Result<api::Schedule> {
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)? {
        return one(&guard, receipt(made)).await;
    }
    check_may_act(&guard)?;
    let known = find(&guard.state, which)?.clone();
    let most = guard.state.spec.limits.max_queue as usize;
    if known.action.has_prompt() && guard.state.inbox.waiting().len() >= most {
        let what = format!("{most} prompts are queued already (limits.max_queue)");
        let error = Error::new(Kind::QueueFull, what);
        return Err(error.next("run it again when some are answered, or raise the limit"));
    }
    let made = due::make(&guard, &known).await?;
    let schedule = known.id;
    let fired = ScheduleFired {
        schedule,
        due: None,
        outcome: made.outcome,
        missed: 0,
        next: None,
    };
    let mut lines = schedule::events(&guard.state, fired, made.order, made.prompt)?;
    let op = asked.with(OpReceipt::Schedule { schedule });
    let current = lines.first().map(|(conversation, _)| *conversation);
    lines.extend(current.zip(op));
    due::append(&mut guard, lines).await?;
    one(&guard, schedule).await
}

pub async fn remove(handle: &AgentHandle, which: &str, asked: &Asked) -> Result<api::Schedules> {
    let mut guard = handle.lock().await;
    if !asked.is_made(&guard.state)? {
        guard.check_active()?;
        let schedule = find(&guard.state, which)?.id;
        let bodies = [Body::from(ScheduleRemoved { schedule })].into_iter();
        let op = asked.with(OpReceipt::Schedule { schedule });
        guard.note(bodies.chain(op)).await?;
        guard.reconcile();
    }
    drop(guard);
    list(handle).await
}

/// An error if the agent is archived or held: neither acts.
fn check_may_act(guard: &AgentGuard<'_>) -> Result<()> {
    guard.check_active()?;
    guard.check_released()
}

/// The schedule with this name or id.
fn find<'a>(state: &'a AgentState, which: &str) -> Result<&'a Schedule> {
    let by_id = || state.schedules.get(which.parse().ok()?);
    let found = state.schedules.named(which).or_else(by_id);
    found.ok_or_else(|| {
        let what = format!("`{}` has no schedule `{which}`", state.name);
        let next = format!("agentd schedule list {}", state.name);
        Error::new(Kind::NotFound, what).next(next)
    })
}

/// The schedule that a change was about.
fn receipt(made: &Made) -> Option<ScheduleId> {
    match made.operation.receipt {
        OpReceipt::Schedule { schedule } => Some(schedule),
        _ => None,
    }
}

/// A schedule as it is now. It may have been removed since the change that is repeated.
async fn one(
    guard: &AgentGuard<'_>,
    schedule: impl Into<Option<ScheduleId>>,
) -> Result<api::Schedule> {
    let known = schedule.into();
    let known = known.and_then(|schedule| guard.state.schedules.get(schedule));
    let gone = || Error::new(Kind::Conflict, "the schedule was removed in the meantime");
    Ok(shown::with_text(guard, known.ok_or_else(gone)?).await)
}

/// Checks that a schedule that is added again with its op has the same prompt.
async fn check_text(
    guard: &AgentGuard<'_>,
    schedule: Option<ScheduleId>,
    given: Option<&str>,
) -> Result<()> {
    let known = schedule.and_then(|schedule| guard.state.schedules.get(schedule));
    let recorded = match known {
        Some(known) => text::of(guard, known).await?,
        None => None,
    };
    match (recorded, given) {
        (Some(recorded), Some(given)) if prompt::text_of(&recorded) != given => {
            let what = "this op was used with another prompt";
            Err(Error::new(Kind::Conflict, what).next("use another op for each schedule"))
        }
        _ => Ok(()),
    }
}
