//! P17: what a webhook is told of is neither lost nor invented. Each message has one id and one content, however often it
//! is sent, and is signed. The messages of a binding, and the notifications about an agent, arrive in the order of the journal.
//! The last message of a binding comes after the answers to everything that was accepted.

use super::evidence::{Event, SentWebhook};
use super::story::Story;
use super::{Case, Found};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P17";
/// How turns end of which the scenario wants notifications.
const TOLD: [&str; 4] = ["completed", "failed", "limited", "lost"];

pub fn check(case: &Case<'_>, found: &mut Found) {
    let sent = &case.evidence.webhooks;
    if sent.is_empty() && case.evidence.run.scenario != "webhooks" {
        return;
    }
    contents(sent, found);
    for story in &case.stories {
        let expected = expected(story);
        for (binding, ends) in &expected {
            let prefix = format!("bnd_{}_", binding.replace('-', ""));
            delivered(story, &prefix, ends, sent, found);
            last(case, story, &prefix, ends, found);
        }
        if case.evidence.run.expects["notices"] == true {
            let prefix = format!("msg_{}_", story.agent.replace('-', ""));
            delivered(story, &prefix, &noticed(story), sent, found);
        }
    }
}

/// One id, one content, always signed.
fn contents(sent: &[SentWebhook], found: &mut Found) {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for message in sent {
        if !message.signed {
            let what = format!("message {} is not signed", message.id);
            found.add_of_run(P, what);
        }
        let raw = known.entry(&message.id).or_insert(&message.raw);
        if *raw != message.raw {
            let what = format!("message {} was sent with two contents", message.id);
            found.add_of_run(P, what);
        }
    }
}

/// For each binding, the events of the turns that answer its prompts: their ends, and where they wait for the user.
fn expected<'a>(story: &Story<'a>) -> BTreeMap<&'a str, Vec<u64>> {
    let mut prompts: BTreeMap<&str, &str> = BTreeMap::new();
    let mut turns: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut ends: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for event in story.events {
        let turn = event.turn.as_deref().unwrap_or_default();
        match event.kind.as_str() {
            "prompt_routed" if event.body["binding"].is_string() => {
                prompts.insert(event.text("prompt"), event.text("binding"));
                ends.entry(event.text("binding")).or_default();
            }
            "prompts_taken" => {
                for prompt in event.list("prompts") {
                    if let Some(&binding) = prompts.get(prompt) {
                        turns.entry(turn).or_default().insert(binding);
                    }
                }
            }
            "turn_paused" => {
                for &binding in turns.get(turn).into_iter().flatten() {
                    ends.entry(binding).or_default().push(event.seq);
                }
            }
            "turn_ended" => {
                for binding in turns.remove(turn).unwrap_or_default() {
                    ends.entry(binding).or_default().push(event.seq);
                }
            }
            _ => {}
        }
    }
    ends
}

/// The ends of turns that the user is notified of.
fn noticed(story: &Story<'_>) -> Vec<u64> {
    let is_told = |event: &&Event| {
        let status = event.text("status");
        let is_own = event.body["compacts"] != true && event.body["withdrawn"] != true;
        event.kind == "turn_ended" && is_own && TOLD.contains(&status)
    };
    let told = story.events.iter().filter(is_told);
    told.map(|event| event.seq).collect()
}

/// Checks the last message of a binding whose messages have ids that begin so.
fn last(case: &Case<'_>, story: &Story<'_>, prefix: &str, ends: &[u64], found: &mut Found) {
    let sent = &case.evidence.webhooks;
    let id = format!("{prefix}unbound");
    let is_delivered = sent.iter().any(|it| it.id == id && it.accepted);
    if case.evidence.run.expects["unbound"] == true && !is_delivered {
        let what = "the last message of a binding was lost".to_owned();
        found.add(P, story.agent, what, &[]);
    }
    let Some(first) = sent.iter().position(|message| message.id == id) else {
        return;
    };
    let (before, after) = sent.split_at(first);
    let is_answered = |end: &u64| {
        let id = format!("{prefix}{end}");
        before.iter().any(|it| it.id == id && it.accepted)
    };
    for end in ends.iter().filter(|end| !is_answered(end)) {
        let what = format!("a binding's last message was sent before the one about event {end}");
        found.add(P, story.agent, what, &[*end]);
    }
    // After a crash, the last two messages are sent again: the one about prompts without an answer, and the last one.
    let removed = format!("{id}_removed");
    let is_repeated = before.iter().any(|it| it.id == removed && it.accepted);
    let is_last = |it: &SentWebhook| it.id == id || is_repeated && it.id == removed;
    let is_other = |it: &&SentWebhook| it.id.starts_with(prefix) && !is_last(it);
    if let Some(other) = after.iter().find(is_other) {
        let what = format!("message {} was sent after a binding's last one", other.id);
        found.add(P, story.agent, what, &[]);
    }
}

/// Checks the messages whose ids begin so: one for each of these events, in their order.
fn delivered(
    story: &Story<'_>,
    prefix: &str,
    ends: &[u64],
    sent: &[SentWebhook],
    found: &mut Found,
) {
    let mut accepted: Vec<u64> = Vec::new();
    let own = sent.iter().filter_map(|message| {
        let seq: u64 = message.id.strip_prefix(prefix)?.parse().ok()?;
        Some((seq, message.accepted))
    });
    for (seq, is_accepted) in own {
        if !ends.contains(&seq) {
            let what = format!("a message about event {seq} was sent, which needs none");
            found.add(P, story.agent, what, &[seq]);
        }
        let before: Vec<u64> = ends.iter().copied().filter(|end| *end < seq).collect();
        if before.iter().any(|end| !accepted.contains(end)) {
            let what = format!("a message about event {seq} was sent before an earlier one");
            found.add(P, story.agent, what, &[seq]);
        }
        if is_accepted && !accepted.contains(&seq) {
            accepted.push(seq);
        }
    }
    for end in ends.iter().filter(|end| !accepted.contains(end)) {
        let what = format!("the message about event {end} was lost");
        found.add(P, story.agent, what, &[*end]);
    }
}
