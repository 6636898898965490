//! P18: a backup that was acknowledged has every event that was acknowledged before it began, and restores to a home without
//! damage that has nothing but what the original had. A backup that was cut off leaves the earlier ones as they were. What
//! was purged is not restored.

use super::backed_up::{Attempt, Backups, Checked, RestoredHome};
use super::evidence::{Event, Journal};
use super::{Case, Found};
use serde_json::Value;
use std::collections::BTreeMap;

const P: &str = "P18";

/// What a restore appends: what was in progress ends, and the agent is stopped.
const APPENDED: &[&str] = &[
    "reset_withdrawn",
    "reset_ended",
    "files_restored",
    "files_restore_ended",
    "agent_stopped",
];

/// Events whose bodies a purge deletes.
const CONTENT: &[&str] = &[
    "prompt", "message", "result", "notice", "context", "summary",
];

pub fn check(case: &Case<'_>, found: &mut Found) {
    let backups = &case.evidence.backups;
    if case.evidence.run.scenario == "backup" && backups.restored.is_empty() {
        found.add_of_run(P, "no backup was restored".to_owned());
    }
    for checked in &backups.checks {
        left_alone(backups, checked, found);
    }
    for home in &backups.restored {
        let file = &home.file;
        if !home.is_restored {
            let what = format!("{file} could not be restored: {}", home.text.trim());
            found.add_of_run(P, what);
            continue;
        }
        if !home.is_clean {
            let what = format!("what {file} restored is damaged: {}", home.text.trim());
            found.add_of_run(P, what);
            continue;
        }
        match backups.made(file, home.at) {
            Some(made) => complete(case, made, home, found),
            None => found.add_of_run(P, format!("{file} was restored, but never acknowledged")),
        }
        for journal in &home.journals {
            same(case, home, journal, found);
            purged(case, home, journal, found);
        }
    }
}

/// A backup that was acknowledged can be used, and is still the same one.
fn left_alone(backups: &Backups, checked: &Checked, found: &mut Found) {
    let file = &checked.file;
    if !checked.is_whole {
        let what = format!("{file} cannot be used any more: {}", checked.text.trim());
        found.add_of_run(P, what);
        return;
    }
    let Some(known) = backups.made(file, checked.at) else {
        return;
    };
    // An attempt without an answer may have replaced it by another whole one.
    let may_replace = backups.attempts.iter().any(|attempt| {
        let is_later = attempt.at >= known.until && attempt.at <= checked.at;
        is_later && attempt.file.is_none() && attempt.to == *file
    });
    if checked.digest != known.digest && !may_replace {
        let what = format!("{file} is not the backup that was acknowledged");
        found.add_of_run(P, what);
    }
}

/// Every event that a client knew of before the backup began is in it.
fn complete(case: &Case<'_>, made: &Attempt, home: &RestoredHome, found: &mut Found) {
    let file = &home.file;
    for (agent, seq) in acknowledged(case, made) {
        let copy = home.journals.iter().find(|it| it.agent == agent);
        let has = copy.map_or(0, |copy| shared(case, copy) as u64);
        if has < seq {
            let what = format!(
                "{file} has {has} events of the original, but event {seq} was acknowledged before it began"
            );
            found.add(P, &agent, what, &[seq]);
        }
    }
}

/// The last event of each agent that a client knew of when the backup began: by a look at the agent, as a reader of events, or as
/// the sender of a prompt.
fn acknowledged(case: &Case<'_>, made: &Attempt) -> BTreeMap<String, u64> {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut note = |agent: &str, seq: u64| {
        let agent = case.evidence.id(agent).to_owned();
        let known = last.entry(agent).or_default();
        *known = seq.max(*known);
    };
    for (agent, head) in &made.heads {
        note(agent, *head);
    }
    for client in &case.evidence.clients {
        let is_before = |line: &&Value| line["at"].as_u64().is_some_and(|at| at < made.at);
        for line in client.saw.iter().filter(is_before) {
            match line["saw"].as_str().unwrap_or_default() {
                "event" => {
                    let own = client.head.agent.as_deref();
                    let agent = line["agent"].as_str().or(own).unwrap_or_default();
                    note(agent, line["seq"].as_u64().unwrap_or_default());
                }
                "line" => {
                    let printed = line["text"].as_str().unwrap_or_default();
                    let printed: Value = serde_json::from_str(printed).unwrap_or_default();
                    let (agent, seq) = (printed["agent"]["id"].as_str(), printed["seq"].as_u64());
                    if let (Some(agent), Some(seq), true) =
                        (agent, seq, printed["prompt"].is_string())
                    {
                        note(agent, seq);
                    }
                }
                _ => {}
            }
        }
    }
    last
}

/// How many events of a copy are those of the original. The others were appended by the restore. All of them, if the
/// run has no export of the original.
fn shared(case: &Case<'_>, copy: &Journal) -> usize {
    match case.story(&copy.agent) {
        Some(story) => {
            let pairs = copy.events.iter().zip(story.events);
            pairs.take_while(|(copied, event)| copied == event).count()
        }
        None => copy.events.len(),
    }
}

/// A copy has no gap, and nothing that the original has not, but for what the restore appended.
fn same(case: &Case<'_>, home: &RestoredHome, copy: &Journal, found: &mut Found) {
    let file = &home.file;
    if let Some(damage) = &copy.damage {
        let what = format!("in the copy from {file}: {damage}");
        found.add(P, &copy.agent, what, &[]);
    }
    let mut numbered = (1..).zip(&copy.events);
    if let Some((expected, event)) = numbered.find(|(expected, event)| event.seq != *expected) {
        let seq = event.seq;
        let what = format!("in the copy from {file}, event {seq} is where {expected} should be");
        found.add(P, &copy.agent, what, &[expected]);
    }
    let mut more = copy.events.iter().skip(shared(case, copy));
    let other = more.find(|event| !APPENDED.contains(&event.kind.as_str()));
    if let Some(Event { seq, kind, .. }) = other {
        let what = format!("in the copy from {file}, event {seq} ({kind}) is not the original's");
        found.add(P, &copy.agent, what, &[*seq]);
    }
}

/// A purge that was acknowledged before the restore began is applied in the copy.
fn purged(case: &Case<'_>, home: &RestoredHome, copy: &Journal, found: &mut Found) {
    let purges = case.evidence.orders.iter().filter(|order| {
        let is_before = order.answered_at.is_some_and(|at| at <= home.at);
        order.verb == "purge" && order.acknowledged && is_before
    });
    let gone = purges.flat_map(|order| order.answer["conversations"].as_array());
    let gone: Vec<&str> = gone.flatten().filter_map(Value::as_str).collect();
    let mut left = copy.events.iter().filter(|event| {
        let is_content = CONTENT.contains(&event.kind.as_str()) && !event.body.is_null();
        is_content && gone.contains(&event.conversation.as_str())
    });
    if let Some(event) = left.next() {
        let (file, seq) = (&home.file, event.seq);
        let what = format!("the copy from {file} has the content of event {seq}, which was purged");
        found.add(P, &copy.agent, what, &[seq]);
    }
}
