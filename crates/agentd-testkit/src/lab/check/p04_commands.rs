//! P4 for commands of the user: none ran twice, none ran before its start was on record, and each has one end, which is
//! unknown only if its shim was killed.

use super::evidence::{Effect, Event};
use super::story::{Story, expects};
use super::{Case, Found};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P4";

/// A command of the user, as one journal has it.
#[derive(Debug, Default)]
struct Command<'a> {
    line: &'a str,
    started: Vec<u64>,
    /// Where it ended, and how.
    ended: Vec<(u64, &'a str)>,
}

fn all<'a>(events: &'a [Event]) -> BTreeMap<&'a str, Command<'a>> {
    let mut all: BTreeMap<&str, Command<'a>> = BTreeMap::new();
    for event in events {
        let command = || event.text("command");
        match event.kind.as_str() {
            "command_started" => all.entry(command()).or_default().started.push(event.seq),
            "command_line" => all.entry(command()).or_default().line = event.text("line"),
            "command_ended" => {
                let exit = event.body["exit"]["type"].as_str().unwrap_or_default();
                all.entry(command())
                    .or_default()
                    .ended
                    .push((event.seq, exit));
            }
            _ => {}
        }
    }
    all
}

/// The commands that may have a process.
pub fn running<'a>(story: &Story<'a>) -> impl Iterator<Item = &'a str> {
    let running = all(story.events).into_iter();
    let running = running.filter(|(_, command)| command.ended.is_empty());
    running.map(|(id, _)| id)
}

/// Whether a command of the user left this trace: it is no call.
pub fn is_of_command(effect: &Effect) -> bool {
    effect.call.is_empty()
}

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        for (id, command) in all(story.events) {
            recorded_once(case, story, (id, &command), found);
        }
    }
    effects(case, found);
}

fn recorded_once(
    case: &Case<'_>,
    story: &Story<'_>,
    (id, command): (&str, &Command<'_>),
    found: &mut Found,
) {
    let (began, ended) = (command.started.len(), command.ended.len());
    let ends = command.ended.iter().map(|(seq, _)| *seq);
    let at: Vec<u64> = command.started.iter().copied().chain(ends).collect();
    if began != 1 || ended > 1 {
        let what = format!("command {id} began {began} times and ended {ended} times");
        found.add(P, story.agent, what, &at);
    }
    let is_unknown = command.ended.iter().any(|(_, exit)| *exit == "unknown");
    let told = expects(&case.evidence.run.expects, "other_boot", id);
    if is_unknown && !told && !case.evidence.shim_was_killed(id) {
        let what = format!("the outcome of command {id} is unknown without a valid reason");
        found.add(P, story.agent, what, &at);
    }
}

/// What commands recorded themselves, compared with the journals. One whose shim is gone is found by its word.
fn effects(case: &Case<'_>, found: &mut Found) {
    let known: Vec<_> = case
        .stories
        .iter()
        .flat_map(|story| {
            all(story.events)
                .into_iter()
                .map(|(id, it)| (story.agent, id, it))
        })
        .collect();
    let mut ran: BTreeMap<&str, BTreeSet<(&str, u64, u64)>> = BTreeMap::new();
    let effects = case.evidence.effects.iter();
    for effect in effects.filter(|it| is_of_command(it) && it.what != "end") {
        let is_it = |id: &str, line: &str| match &effect.task {
            Some(task) => task == id,
            None => line.contains(&effect.what),
        };
        let Some((_, id, _)) = known.iter().find(|(_, id, it)| is_it(id, it.line)) else {
            let what = format!(
                "a command ({}) ran, but its start is not on record",
                effect.what
            );
            found.add_of_run(P, what);
            continue;
        };
        let process = (effect.pid_ns.as_str(), effect.pid, effect.start);
        ran.entry(id).or_default().insert(process);
    }
    for (agent, id, command) in &known {
        let times = ran.get(id).map_or(0, BTreeSet::len);
        if times > 1 {
            let what = format!("command {id} ran {times} times");
            found.add(P, agent, what, &command.started);
        }
        let is_not_run = command.ended.iter().any(|(_, exit)| *exit == "not_started");
        if is_not_run && times > 0 {
            let what = format!("command {id} ran, but its end says that it did not");
            found.add(P, agent, what, &command.started);
        }
    }
}
