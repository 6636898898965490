//! Schedules: in a line, and as a table.

use crate::error::Error;
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{line_of, named, time, word};
use agentd_client::api::{DueTime, Schedule, When};
use agentd_core::event::{FiringOutcome, PausedBecause, ScheduleAction, SkippedBecause};
use agentd_core::state::ScheduleWaits;
use agentd_core::time::Timestamp;

/// `next at 2026-01-31 09:00:00 Europe/Zurich (in 3h)`, or why there is no next due time.
pub fn next(schedule: &Schedule, now: Timestamp) -> String {
    if let Some(why) = schedule.paused {
        return match why {
            PausedBecause::User => "it is paused".to_owned(),
            PausedBecause::Imported => "it is paused, because it was imported".to_owned(),
            PausedBecause::Archived => "it is paused, because the agent was removed".to_owned(),
            PausedBecause::CannotRun => "it is paused, because it could not run".to_owned(),
        };
    }
    let Some(DueTime(at)) = schedule.next.first() else {
        return "it is not due again".to_owned();
    };
    let due = format!("next at {} {}", clock(&schedule.when, *at), away(*at, now));
    match schedule.waits {
        None => due,
        Some(ScheduleWaits::Stopped) => format!("{due}, but the agent is stopped"),
        Some(ScheduleWaits::Failed) => format!("{due}, but the agent has failed"),
        Some(ScheduleWaits::QueueFull) => format!("{due}, but the queue is full"),
        Some(ScheduleWaits::Turn) => format!("{due}, after the turn"),
    }
}

/// `(in 3h)`.
fn away(at: Timestamp, now: Timestamp) -> String {
    match at > now {
        true => format!("(in {})", time::rough(at.since(now))),
        false => "(due)".to_owned(),
    }
}

/// The zone of a schedule. An interval has none.
const fn zone(when: &When) -> Option<&String> {
    match when {
        When::Cron { zone, .. } | When::At { zone, .. } => Some(zone),
        When::Every { .. } => None,
    }
}

/// A time in the zone of the schedule, with the name of the zone.
fn clock(when: &When, at: Timestamp) -> String {
    time::clock_of(at, zone(when).map(String::as_str))
}

/// The same for a table, whose column WHEN names the zone.
fn cell(when: &When, at: Timestamp) -> String {
    let of_zone = zone(when).and_then(|zone| time::clock_in(at, zone));
    of_zone.unwrap_or_else(|| clock(when, at))
}

/// One line of `agentd show`.
pub fn line(schedule: &Schedule, now: Timestamp) -> String {
    let (name, when) = (&schedule.name, when(&schedule.when));
    format!("{name}: {when}; {}", next(schedule, now))
}

pub fn when(when: &When) -> String {
    match when {
        When::Cron { expression, zone } => format!("{expression} {zone}"),
        When::At { at, .. } => format!("once at {}", clock(when, *at)),
        When::Every { every_ms } => format!("every {}", time::exact(*every_ms)),
    }
}

pub fn print(schedules: &[Schedule], now: Timestamp, out: &mut Output) -> Result<(), Error> {
    let rows: Vec<_> = schedules.iter().map(|it| row(it, now)).collect();
    let head = [
        Head::Kept("AGENT"),
        Head::Kept("SCHEDULE"),
        Head::Kept("WHEN"),
        Head::Kept("NEXT"),
        Head::Spare("MISSED", 3),
        Head::Spare("OVERLAP", 4),
        Head::Spare("LAST", 2),
        Head::Spare("DOES", 1),
    ];
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn row(schedule: &Schedule, now: Timestamp) -> Vec<String> {
    let state = match (schedule.paused, schedule.next.first(), schedule.waits) {
        (Some(why), _, _) => format!("paused ({})", word(why)),
        (None, None, _) => "-".to_owned(),
        (None, Some(DueTime(at)), None) => {
            format!("{} {}", cell(&schedule.when, *at), away(*at, now))
        }
        (None, Some(DueTime(at)), Some(waits)) => {
            format!("{}, waits ({})", cell(&schedule.when, *at), word(waits))
        }
    };
    let prompt = schedule.prompt.as_deref().map(line_of).unwrap_or_default();
    vec![
        named(&schedule.agent),
        schedule.name.clone(),
        when(&schedule.when),
        state,
        word(schedule.missed),
        word(schedule.overlap),
        last(schedule, now),
        match schedule.action {
            ScheduleAction::Prompt => prompt,
            ScheduleAction::Reset => "reset".to_owned(),
            ScheduleAction::Fresh => format!("reset, then: {prompt}"),
        },
    ]
}

fn last(schedule: &Schedule, now: Timestamp) -> String {
    let Some(last) = schedule.last else {
        return "-".to_owned();
    };
    let ago = time::ago(last.at, now);
    match last.outcome {
        FiringOutcome::Fired { .. } if last.due.is_none() => format!("run {ago}"),
        FiringOutcome::Fired { .. } => format!("fired {ago}"),
        FiringOutcome::Skipped {
            why: SkippedBecause::Missed,
        } => format!("missed {ago}"),
        FiringOutcome::Skipped {
            why: SkippedBecause::Overlap,
        } => format!("skipped {ago}"),
    }
}
