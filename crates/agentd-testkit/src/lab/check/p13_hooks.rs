//! P13: each hook runs at most once per event, and its outcome is on record: *unknown* only if its shim itself was
//! killed, or for a service. A denial is obeyed; text for a conversation opens it; the transcript is complete when
//! the hook reads it.

use super::evidence::{Event, Heard};
use super::requests::{self, Matched};
use super::story::{Story, expects};
use super::{Case, Found, words};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P13";

/// Events that are written concurrently, and may come between the transcript and the hook.
const BESIDE: &[&str] = &["hook_started", "hook_ended", "hook_output"];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for (index, story) in case.stories.iter().enumerate() {
        let hooks = hooks(story);
        for hook in hooks.values() {
            reported(case, story, hook, found);
            obeyed(case, story, hook, found);
        }
        opens(case, index, &hooks, found);
    }
    for heard in &case.evidence.heard {
        on_record(case, heard, found);
    }
    once(case, found);
}

/// A handler that was to run, and its recorded end.
struct Hook<'a> {
    started: &'a Event,
    ended: Vec<&'a Event>,
}

impl<'a> Hook<'a> {
    fn id(&self) -> &'a str {
        self.started.text("hook")
    }

    /// It ran to its end, and ended by itself.
    fn exit(&self) -> Option<i64> {
        let ended = self.ended.first().filter(|it| it.text("outcome") == "ran");
        ended.and_then(|it| it.body["exit"].as_i64())
    }
}

fn hooks<'a>(story: &Story<'a>) -> BTreeMap<&'a str, Hook<'a>> {
    let mut hooks: BTreeMap<&str, Hook<'a>> = BTreeMap::new();
    for event in story.events {
        let id = event.text("hook");
        if event.is("hook_started") {
            let (started, ended) = (event, Vec::new());
            hooks.insert(id, Hook { started, ended });
        } else if let (true, Some(hook)) = (event.is("hook_ended"), hooks.get_mut(id)) {
            hook.ended.push(event);
        }
    }
    hooks
}

fn of_hook<'a>(case: &'a Case<'_>, id: &str) -> impl Iterator<Item = &'a Heard> {
    let heard = case.evidence.heard.iter();
    heard.filter(move |heard| heard.hook.as_deref() == Some(id))
}

/// One end, which matches what happened.
fn reported(case: &Case<'_>, story: &Story<'_>, hook: &Hook<'_>, found: &mut Found) {
    let (id, event) = (hook.id(), hook.started.text("event"));
    let ends: Vec<u64> = hook.ended.iter().map(|it| it.seq).collect();
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    let Some(ended) = hook.ended.first() else {
        let what = format!("the outcome of hook {id} ({event}) is not on record");
        return wrong(what, &[hook.started.seq]);
    };
    if ends.len() > 1 {
        wrong(format!("hook {id} ended {} times", ends.len()), &ends);
    }
    let expected = &case.evidence.run.expects;
    let ran = of_hook(case, id).next().is_some();
    match ended.text("outcome") {
        "ran" => {
            let traces = expects(expected, "hooks_with_traces", event);
            if traces && hook.exit() == Some(0) && !ran {
                wrong(
                    format!("hook {id} ({event}) is recorded as run, but has not run"),
                    &ends,
                );
            }
        }
        "not_run" if ran => {
            wrong(
                format!("hook {id} ({event}) ran, but is recorded as not run"),
                &ends,
            );
        }
        "not_run" => {}
        "unknown" => {
            let is_http = hook.started.text("way") == "http";
            if !is_http && !case.evidence.shim_was_killed(id) && expected["other_boot"] != true {
                let what =
                    format!("the outcome of hook {id} ({event}) is unknown without a valid reason");
                wrong(what, &ends);
            }
        }
        other => wrong(format!("hook {id} ended as `{other}`"), &ends),
    }
}

/// A call that a hook denied does not run.
fn obeyed(case: &Case<'_>, story: &Story<'_>, hook: &Hook<'_>, found: &mut Found) {
    let is_no = hook.ended.iter().any(|it| it.text("decision") == "deny");
    let said_no = hook.exit() == Some(2) && of_hook(case, hook.id()).any(|heard| heard.denies);
    let call = hook.started.text("call");
    if hook.started.text("event") != "PreToolUse" || !(is_no || said_no) {
        return;
    }
    if let Some(started) = story.calls.get(call).and_then(|call| call.started.first()) {
        let what = format!("call {call} began, but a hook had denied it");
        found.add(P, story.agent, what, &[hook.started.seq, *started]);
    }
    let mut effects = case.evidence.effects.iter();
    let own = |agent: &Option<String>| agent.as_deref() == Some(story.agent);
    if effects.any(|it| it.call == call && own(&it.agent)) {
        let what = format!("call {call} ran, but a hook had denied it");
        found.add(P, story.agent, what, &[hook.started.seq]);
    }
}

/// Every hook that ran was to run, and found the transcript complete.
fn on_record(case: &Case<'_>, heard: &Heard, found: &mut Found) {
    // A hook whose shim was gone before it looked does not know its id.
    let (Some(id), Some(story)) = (&heard.hook, case.story(&heard.agent)) else {
        return;
    };
    let mut starts = story.events.iter().filter(|it| it.is("hook_started"));
    let Some(started) = starts.find(|it| it.text("hook") == id) else {
        let what = format!("hook {id} ({}) ran, but is not on record", heard.event);
        return found.add(P, story.agent, what, &[]);
    };
    let own = story.events.iter().filter(|event| {
        let is_own = event.conversation == heard.session && event.seq < started.seq;
        is_own && !BESIDE.contains(&event.kind.as_str())
    });
    let due = own.map(|event| event.seq).max();
    // The hook of a reset runs while the turn continues.
    if heard.event != "PreReset" && heard.transcript < due {
        let (read, due) = (heard.transcript.unwrap_or(0), due.unwrap_or(0));
        let what = format!(
            "the transcript that hook {id} ({}) read ends with event {read}, but {due} existed",
            heard.event
        );
        found.add(P, story.agent, what, &[due, started.seq]);
    }
}

/// Each handler runs once per event subject; there is one handler for each event.
fn once(case: &Case<'_>, found: &mut Found) {
    let mut ran: BTreeMap<(String, String), BTreeSet<(u64, u64)>> = BTreeMap::new();
    for heard in &case.evidence.heard {
        let process = (heard.pid, heard.start);
        let mut count = |about: String| {
            let key = (heard.agent.clone(), about);
            ran.entry(key).or_default().insert(process);
        };
        if let Some(hook) = &heard.hook {
            count(format!("hook {hook}"));
        }
        if let Some(subject) = subject(heard) {
            count(format!("the hook for {subject}"));
        }
    }
    for ((agent, about), processes) in ran {
        if processes.len() > 1 {
            let what = format!("{about} ran {} times", processes.len());
            found.add(P, case.evidence.id(&agent), what, &[]);
        }
    }
}

/// The subject that occurs only once; none if the event can happen again.
fn subject(heard: &Heard) -> Option<String> {
    let event = heard.event.as_str();
    let op = heard.op.as_deref();
    let about = match event {
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => heard.call.as_deref()?,
        "UserPromptSubmit" => heard.prompt.as_deref()?,
        "PreReset" => op?,
        "SessionStart" if is_again(heard) => return None,
        "SessionStart" | "SessionEnd" => op.unwrap_or(&heard.session),
        "Stop" if heard.active != Some(true) => heard.turn.as_deref()?,
        _ => return None,
    };
    Some(format!("{event} of {about}"))
}

/// A conversation that continues, perhaps not for the first time.
fn is_again(heard: &Heard) -> bool {
    matches!(heard.source.as_deref(), Some("resume" | "compact"))
}

/// The text that a hook returned when a conversation began is in it, once, before the first answer.
fn opens(case: &Case<'_>, index: usize, hooks: &BTreeMap<&str, Hook<'_>>, found: &mut Found) {
    let story = &case.stories[index];
    let said = case.evidence.heard.iter().filter_map(|heard| {
        let hook = hooks.get(heard.hook.as_deref()?)?;
        let says = heard
            .says
            .as_deref()
            .filter(|_| hook.exit() == Some(0) && !is_again(heard))?;
        Some((heard.session.as_str(), says))
    });
    let said: Vec<(&str, &str)> = said.collect();
    if said.is_empty() {
        return;
    }
    let journal = &case.evidence.journals[index];
    let got = requests::of_agent(case.evidence, journal);
    let pairs = match requests::matched(journal, story, &got) {
        Matched::All(pairs) => pairs,
        // That is a violation already.
        Matched::Not(_) => Vec::new(),
    };
    for (conversation, says) in said {
        let of = |event: &&Event| event.conversation == conversation;
        let notices = story.events.iter().filter(of);
        let notices = notices.filter(|it| it.is("notice") && it.text("text").contains(says));
        let notices: Vec<u64> = notices.map(|it| it.seq).collect();
        if notices.len() != 1 {
            let times = notices.len();
            let what = format!("`{says}` is in its conversation {times} times");
            found.add(P, story.agent, what, &notices);
        }
        let mut events = story.events.iter().filter(of);
        let first = events.find(|it| it.is("prompts_taken"));
        if let (Some(first), Some(notice)) = (first, notices.first())
            && first.seq < *notice
        {
            let what = format!("`{says}` does not open its conversation");
            found.add(P, story.agent, what, &[first.seq, *notice]);
        }
        let mut sent = pairs.iter().enumerate();
        let first = sent.find(|(_, at)| story.requests[**at].conversation == conversation);
        if let Some((at, _)) = first {
            let heard = words::of_request(&got[at].body);
            let times = heard.iter().filter(|word| word.contains(says)).count();
            if times != 1 {
                let n = got[at].n;
                let what = format!(
                    "request {n}, the first of its conversation, contains `{says}` {times} times"
                );
                found.add(P, story.agent, what, &[]);
            }
        }
    }
}
