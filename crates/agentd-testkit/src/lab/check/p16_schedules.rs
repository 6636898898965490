//! P16: each due time of a schedule is handled at most once, in order and not before it is due. What a firing does is in
//! its commit: there is no prompt of a schedule without its firing, and no firing without its prompt.

use super::evidence::Event;
use super::story::Story;
use super::{Case, Found};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P16";

/// The events of a firing: itself, the beginning of a reset with its note, and the prompt.
const COMMIT: u64 = 3;

/// What is known of one schedule.
#[derive(Default)]
struct Schedule {
    /// The interval and its beginning, in milliseconds.
    every: Option<(i64, i64)>,
    last: Option<(i64, u64)>,
    is_active: bool,
}

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        due_times(story, found);
        prompts(story, found);
    }
}

fn due_times(story: &Story<'_>, found: &mut Found) {
    let mut schedules: BTreeMap<&str, Schedule> = BTreeMap::new();
    for event in story.events {
        let known = schedules.entry(event.text("schedule"));
        match event.kind.as_str() {
            "schedule_added" => {
                let rule = &event.body["rule"];
                let every = rule["every_ms"].as_i64().zip(rule["from"].as_i64());
                let (last, is_active) = (None, true);
                known.or_insert(Schedule {
                    every,
                    last,
                    is_active,
                });
            }
            "schedule_paused" | "schedule_removed" => known.or_default().is_active = false,
            "schedule_resumed" => known.or_default().is_active = true,
            "schedule_fired" => one(story, event, known.or_default(), found),
            _ => {}
        }
    }
}

fn one(story: &Story<'_>, event: &Event, known: &mut Schedule, found: &mut Found) {
    let id = event.text("schedule");
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    let Some(due) = event.body["due"].as_i64() else {
        // The user ran it.
        return;
    };
    if !known.is_active {
        let what = format!("schedule {id} fired while it was paused, or after it was removed");
        wrong(what, &[event.seq]);
    }
    if let Some((last, seq)) = known.last.replace((due, event.seq))
        && due <= last
    {
        let what = format!("schedule {id}: due time {due} was handled after {last}");
        wrong(what, &[seq, event.seq]);
    }
    if i64::try_from(event.at).is_ok_and(|at| at < due) {
        let what = format!("schedule {id}: due time {due} was handled before it was due");
        wrong(what, &[event.seq]);
    }
    if event.body["next"].as_i64().is_some_and(|next| next <= due) {
        let what = format!("schedule {id}: the due time after {due} is not later");
        wrong(what, &[event.seq]);
    }
    if let Some((every, from)) = known.every
        && (every <= 0 || due <= from || (due - from) % every != 0)
    {
        let what = format!("schedule {id}: {due} is not one of its due times");
        wrong(what, &[event.seq]);
    }
}

/// Each firing has its prompt in its commit, and each prompt of a schedule its firing.
fn prompts(story: &Story<'_>, found: &mut Found) {
    let mut fired: BTreeSet<&str> = BTreeSet::new();
    for event in story.events.iter().filter(|it| it.is("schedule_fired")) {
        let Some(prompt) = event.body["outcome"]["prompt"].as_str() else {
            continue;
        };
        fired.insert(prompt);
        let mut commit = story.events.iter().filter(|it| {
            let is_after = it.seq > event.seq && it.seq <= event.seq + COMMIT;
            is_after && it.is("prompt_queued")
        });
        let Some(queued) = commit.find(|it| it.text("prompt") == prompt) else {
            let what = format!("prompt {prompt} of a schedule is not in the commit of its firing");
            found.add(P, story.agent, what, &[event.seq]);
            continue;
        };
        let due = event.body["due"].as_i64();
        let key = due.map(|due| format!("schedule:{}:{due}", event.text("schedule")));
        if key.is_some_and(|key| queued.text("key") != key) {
            let what = format!("prompt {prompt} of a schedule has the key of another due time");
            found.add(P, story.agent, what, &[event.seq, queued.seq]);
        }
    }
    for event in story.events.iter().filter(|it| it.is("prompt_queued")) {
        let prompt = event.text("prompt");
        if event.text("key").starts_with("schedule:") && !fired.contains(prompt) {
            let what = format!("prompt {prompt} of a schedule was queued without a firing");
            found.add(P, story.agent, what, &[event.seq]);
        }
    }
}
