//! P4: no tool process ran twice; each call has exactly one persisted result; *unknown* only if the
//! shim itself was killed, for MCP, after another boot, or if another process changed the file.

use super::story::{Call, Story, expects};
use super::{Case, Found, p04_commands};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P4";

/// The processes, by PID namespace, pid and start time, that each call of each agent had.
type Ran<'a> = BTreeMap<(Option<&'a str>, &'a str), Vec<(&'a str, u64, u64)>>;

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        for (id, call) in &story.calls {
            one_result(id, call, story, found);
            in_order(id, call, story, found);
        }
        for (id, task) in &story.tasks {
            if task.started.len() != 1 || task.ended.len() > 1 {
                let (began, ended) = (task.started.len(), task.ended.len());
                let what = format!("task {id} began {began} times and ended {ended} times");
                let at: Vec<u64> = task.started.iter().chain(&task.ended).copied().collect();
                found.add(P, story.agent, what, &at);
            }
        }
    }
    unknown(case, found);
    effects(case, found);
    p04_commands::check(case, found);
}

/// One start, one end, one result, and the result agrees.
fn one_result(id: &str, call: &Call<'_>, story: &Story<'_>, found: &mut Found) {
    let mut wrong = |what: String, at: Vec<u64>| found.add(P, story.agent, what, &at);
    if call.started.len() > 1 {
        wrong(
            format!("call {id} was started {} times", call.started.len()),
            call.started.clone(),
        );
    }
    if call.ended.len() > 1 {
        let at = call.ended.iter().map(|(seq, _)| *seq).collect();
        wrong(format!("call {id} ended {} times", call.ended.len()), at);
    }
    // A branch is told about a call that it left behind; that is not a second result.
    let own = |conversation: &str| call.made.is_empty() || conversation == call.conversation;
    let results: Vec<_> = call.results.iter().filter(|(_, _, of)| own(of)).collect();
    if results.len() > 1 {
        let at = results.iter().map(|(seq, _, _)| *seq).collect();
        wrong(format!("call {id} has {} results", results.len()), at);
    }
    if let (Some((ended, outcome)), Some((result, told, _))) = (call.ended.first(), results.first())
        && outcome != told
    {
        wrong(
            format!("call {id} ended as {outcome}, but its result says {told}"),
            vec![*ended, *result],
        );
    }
    if call.ended.is_empty() != results.is_empty() && !call.made.is_empty() {
        let at = call.started.clone();
        wrong(
            format!("call {id} has an end without a result, or a result without an end"),
            at,
        );
    }
    let turn = story.turn(call.turn);
    let is_over = turn.is_some_and(|turn| !turn.ended.is_empty());
    if !call.made.is_empty() && results.is_empty() && is_over {
        wrong(
            format!("call {id} has no result, but its turn is over"),
            call.made.clone(),
        );
    }
    if call.made.is_empty() && (!call.started.is_empty() || !call.ended.is_empty()) {
        wrong(
            format!("call {id} was made by no message"),
            call.started.clone(),
        );
    }
    if call.made.len() > 1 {
        wrong(
            format!("call {id} was made {} times", call.made.len()),
            call.made.clone(),
        );
    }
}

/// Made, started, ended; and the next request waits until all calls have ended.
fn in_order(id: &str, call: &Call<'_>, story: &Story<'_>, found: &mut Found) {
    let made = call.made.first().copied();
    let started = call.started.first().copied();
    let ended = call.ended.first().map(|(seq, _)| *seq);
    let rising = |a: Option<u64>, b: Option<u64>| a.zip(b).is_none_or(|(a, b)| a < b);
    if !rising(made, started) || !rising(started, ended) || !rising(made, ended) {
        let at: Vec<u64> = [made, started, ended].into_iter().flatten().collect();
        found.add(
            P,
            story.agent,
            format!("call {id} ended before it began"),
            &at,
        );
    }
    let Some(made) = made else { return };
    let early = story.requests.iter().find(|request| {
        let is_later = request.turn == call.turn && request.sent > made;
        is_later && ended.is_none_or(|ended| request.sent < ended)
    });
    if let Some(request) = early {
        let what = format!(
            "request {} was sent while call {id} had no result",
            request.id
        );
        found.add(P, story.agent, what, &[made, request.sent]);
    }
}

/// The outcome is unknown only if that shim was killed, and in a few other cases.
fn unknown(case: &Case<'_>, found: &mut Found) {
    let expected = &case.evidence.run.expects;
    for story in &case.stories {
        for (id, call) in &story.calls {
            let Some((seq, _)) = call.ended.iter().find(|(_, outcome)| *outcome == "unknown")
            else {
                continue;
            };
            let of_shim = call
                .task
                .is_some_and(|it| case.evidence.shim_was_killed(it));
            let of_mcp = call.tool.contains("__") || call.tool.starts_with("mcp");
            let told = ["other_boot", "file_changed_by_others"]
                .iter()
                .any(|reason| expects(expected, reason, id));
            if !of_shim && !of_mcp && !told {
                let what = format!("the outcome of call {id} is unknown without a valid reason");
                found.add(P, story.agent, what, &[*seq]);
            }
        }
        let ended = story.events.iter().filter(|it| it.is("task_ended"));
        for event in ended.filter(|it| it.body["exit"]["type"] == "unknown") {
            let task = event.text("task");
            let told = expects(expected, "other_boot", task);
            if !told && !case.evidence.shim_was_killed(task) {
                let what = format!("the end of task {task} is unknown without a valid reason");
                found.add(P, story.agent, what, &[event.seq]);
            }
        }
    }
}

/// What tools recorded themselves, compared with the journal.
fn effects(case: &Case<'_>, found: &mut Found) {
    // Call numbers repeat between agents: an effect without an agent may belong to any of them.
    let mut ran = Ran::new();
    for effect in case
        .evidence
        .effects
        .iter()
        .filter(|effect| effect.what != "end" && !p04_commands::is_of_command(effect))
    {
        let agent = effect.agent.as_deref().map(|agent| case.evidence.id(agent));
        let processes = ran.entry((agent, &effect.call)).or_default();
        processes.push((effect.pid_ns.as_str(), effect.pid, effect.start));
    }
    for ((agent, call), processes) in &ran {
        let may_be = |story: &&Story<'_>| agent.is_none_or(|agent| story.agent == agent);
        let known = case.stories.iter().filter(may_be);
        let known: Vec<_> = known
            .filter_map(|story| Some((story, story.calls.get(call)?)))
            .filter(|(_, call)| !call.started.is_empty())
            .collect();
        let whose = known.first().map(|(story, _)| story.agent).or(*agent);
        let mut wrong = |what: String, at: &[u64]| match whose {
            Some(agent) => found.add(P, agent, what, at),
            None => found.add_of_run(P, what),
        };
        let at: Vec<u64> = known
            .iter()
            .flat_map(|(_, call)| call.started.clone())
            .collect();
        let times = processes.iter().collect::<BTreeSet<_>>().len();
        if known.is_empty() {
            wrong(
                format!("call {call} ran, but its start is not on record"),
                &at,
            );
        } else if times > known.len() {
            wrong(format!("call {call} ran {times} times"), &at);
        }
        let not_run = known.iter().filter(|(_, call)| {
            let mut ends = call.ended.iter();
            ends.any(|(_, outcome)| matches!(*outcome, "not_started" | "denied"))
        });
        let not_run = not_run.count();
        if not_run > 0 && times > known.len() - not_run {
            wrong(
                format!("call {call} ran, but its result says that it did not"),
                &at,
            );
        }
    }
    has_run(case, &ran, found);
}

/// If the scenario says that a tool leaves a trace whenever it runs: a successful call must have left one.
fn has_run(case: &Case<'_>, ran: &Ran<'_>, found: &mut Found) {
    for story in &case.stories {
        for (id, call) in &story.calls {
            let traces = expects(&case.evidence.run.expects, "tools_with_effects", call.tool);
            let done = call.ended.iter().any(|(_, outcome)| *outcome == "ok");
            let left =
                ran.contains_key(&(None, *id)) || ran.contains_key(&(Some(story.agent), *id));
            if traces && done && !left {
                let at: Vec<u64> = call.ended.iter().map(|(seq, _)| *seq).collect();
                found.add(
                    P,
                    story.agent,
                    format!("call {id} succeeded but never ran"),
                    &at,
                );
            }
        }
    }
}
