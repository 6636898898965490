//! P11: at most one notice for each interruption, never in the user's role; the model is told of every
//! restriction.

use super::story::Story;
use super::withdrawn::is_withdrawn;
use super::{Case, Found, outer, words};
use serde_json::Value;
use std::collections::BTreeMap;

const P: &str = "P11";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        once(story, found);
        tasks(story, found);
        told(story, found);
        not_the_users(case, story, found);
    }
    for request in &case.evidence.model {
        apart(case, request, found);
    }
}

/// The subject of a notice of this cause: there is at most one notice per subject.
fn once(story: &Story<'_>, found: &mut Found) {
    let mut seen: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    let mut incarnation = 0;
    for event in story.events {
        match event.kind.as_str() {
            "incarnation_began" => incarnation = event.seq,
            "notice" => {
                let cause = event.text("cause");
                let about = match cause {
                    "interrupted" | "limited" => event.turn.clone().unwrap_or_default(),
                    "crashed" | "restarted" => incarnation.to_string(),
                    "tasks_carried" | "branched" => event.conversation.clone(),
                    _ => continue,
                };
                seen.entry((cause.to_owned(), about))
                    .or_default()
                    .push(event.seq);
            }
            _ => {}
        }
    }
    for ((cause, _), at) in seen {
        if at.len() > 1 {
            let what = format!("the model is told {} times of one event: {cause}", at.len());
            found.add(P, story.agent, what, &at);
        }
    }
}

/// Each conversation is told at most once that a task ended, and the one that was current then is told.
fn tasks(story: &Story<'_>, found: &mut Found) {
    let notices = story.events.iter().filter(|it| it.is("notice"));
    let notices: Vec<_> = notices
        .filter(|it| it.text("cause") == "task_ended")
        .collect();
    for (task, known) in &story.tasks {
        let mut told: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for notice in notices.iter().filter(|it| it.text("text").contains(task)) {
            told.entry(&notice.conversation)
                .or_default()
                .push(notice.seq);
        }
        for at in told.values().filter(|at| at.len() > 1) {
            let what = format!(
                "a conversation is told {} times that task {task} ended",
                at.len()
            );
            found.add(P, story.agent, what, at);
        }
        for ended in known.ended.iter().filter_map(|seq| story.event(*seq)) {
            if !told.contains_key(ended.conversation.as_str()) {
                let what = format!("task {task} ended, but the conversation is not told");
                found.add(P, story.agent, what, &[ended.seq]);
            }
        }
        let early = told.values().flatten().find(|seq| {
            let mut ends = known.ended.iter();
            !ends.any(|ended| ended < seq)
        });
        if let Some(seq) = early {
            let what = format!("the model is told that task {task} ended, but it has not");
            found.add(P, story.agent, what, &[*seq]);
        }
    }
}

/// The model is told of an interrupted turn, and why a call did not succeed.
fn told(story: &Story<'_>, found: &mut Found) {
    for event in story
        .events
        .iter()
        .filter(|event| event.is("result") && !event.body.is_null())
    {
        if event.text("outcome") != "ok" && words::texts(&event.body["blocks"]).is_empty() {
            let (call, outcome) = (event.text("call"), event.text("outcome"));
            let what = format!("call {call} is {outcome}, but the model is not told why");
            found.add(P, story.agent, what, &[event.seq]);
        }
    }
    for turn in &story.turns {
        let Some((seq, "interrupted")) = turn.ended.first() else {
            continue;
        };
        // A compaction is not the model's own action.
        let started = turn.started.first().and_then(|seq| story.event(*seq));
        if started.is_some_and(|it| it.body["compacts"].is_string()) {
            continue;
        }
        let own = || {
            let events = story.events.iter();
            events.filter(|event| event.turn.as_deref() == Some(turn.id))
        };
        let has = |kind: &str| own().any(|event| event.is(kind));
        // The model never saw a prompt that was removed, or interrupted while hooks ran for it.
        if is_withdrawn(story, turn) || outer::ended_with_its_program(story, turn) {
            continue;
        }
        if has("prompt_blocked") && !has("prompts_taken") {
            continue;
        }
        if !own().any(|event| event.is("notice") && event.text("cause") == "interrupted") {
            let what = format!(
                "turn {} was interrupted, but the model is not told",
                turn.id
            );
            found.add(P, story.agent, what, &[*seq]);
        }
    }
}

/// Every prompt comes from a user, now or by a schedule; no other text is stored as a prompt.
fn not_the_users(case: &Case<'_>, story: &Story<'_>, found: &mut Found) {
    let sent = case.evidence.prompts.iter();
    let sent = sent.filter(|sent| case.evidence.id(&sent.agent) == story.agent);
    let sent: Vec<&str> = sent.map(|sent| sent.text.trim()).collect();
    let notices = story.events.iter().filter(|event| event.is("notice"));
    let notices: Vec<&str> = notices.map(|event| event.text("text")).collect();
    // The task of a subagent, and its answer, are prompts too.
    let of_subagent = |id: &str| {
        let mut events = story.events.iter();
        events.any(|it| {
            let of_subagent = it.is("subagent_of") || it.is("subagent_ended");
            of_subagent && it.text("prompt") == id
        })
    };
    let of_schedule = |id: &str| {
        let mut fired = story.events.iter().filter(|it| it.is("schedule_fired"));
        fired.any(|it| it.body["outcome"]["prompt"] == id)
    };
    for (id, prompt) in &story.prompts {
        if of_subagent(id) || of_schedule(id) {
            continue;
        }
        let words = prompt.words.join("\n");
        let at: Vec<u64> = prompt.queued.iter().map(|(seq, _)| *seq).collect();
        let is_notice = notices
            .iter()
            .any(|notice| !notice.is_empty() && words.contains(notice));
        if is_notice || words.contains("<notice>") {
            found.add(
                P,
                story.agent,
                format!("prompt {id} is a notice of ours"),
                &at,
            );
        } else if !sent.is_empty() && !words.is_empty() && !sent.contains(&words.as_str()) {
            let what = format!("prompt {id} was sent by no client: `{words}`");
            found.add(P, story.agent, what, &at);
        }
    }
}

/// In a request a notice has its own block.
fn apart(case: &Case<'_>, request: &super::evidence::ModelRequest, found: &mut Found) {
    let mut texts = Vec::new();
    raw(words::messages(&request.body), &mut texts);
    for text in texts {
        let text = text.trim();
        let begins = text.starts_with("<notice>");
        let is_alone =
            begins && text.matches("<notice>").count() == 1 && text.ends_with("</notice>");
        if begins && !is_alone {
            let what = format!("request {} has a notice inside another block", request.n);
            match &request.agent {
                Some(agent) => found.add(P, case.evidence.id(agent), what, &[]),
                None => found.add_of_run(P, what),
            }
        }
    }
}

fn raw<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| raw(item, texts)),
        Value::Object(map) => map.values().for_each(|item| raw(item, texts)),
        _ => {}
    }
}
