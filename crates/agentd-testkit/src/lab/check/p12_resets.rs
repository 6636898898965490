//! P12: reset and undo: exactly one conversation is current; no prompt that was set aside is lost; a
//! repeated `op` is a no-op.

use super::evidence::Event;
use super::story::{PromptStatus, Reset, Story};
use super::{Case, Found};
use serde_json::Value;
use std::collections::BTreeSet;

const P: &str = "P12";

const STEPS: &[&str] = &[
    "pre_reset",
    "stop",
    "session_end",
    "switch",
    "session_start",
];

/// The events of the one commit that makes another conversation current.
const SWITCH: &[&str] = &[
    "prompts_set_aside",
    "conversation_sealed",
    "conversation_began",
    "pointer_moved",
    "checkpoint_set",
    "prompts_requeued",
    "prompt_queued",
    "prompt",
    "notice",
    "result",
    "reset_stepped",
];

/// What only the current conversation has.
const CURRENT_ONLY: &[&str] = &[
    "turn_started",
    "request_sent",
    "tool_started",
    "prompts_taken",
];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        switches(story, found);
        in_the_current_one(story, found);
        for reset in &story.resets {
            one_reset(reset, story, found);
        }
        set_aside(story, found);
    }
    for status in &case.evidence.status {
        if let Some(story) = case.story(&status.agent) {
            shown(story, &status.show, found);
        }
    }
    receipts(case, found);
}

/// A conversation is sealed if and only if another one becomes current.
fn switches(story: &Story<'_>, found: &mut Found) {
    for (index, event) in story.events.iter().enumerate() {
        if event.is("conversation_sealed") && event.text("reason") != "archived" {
            let mut rest = story.events[index + 1..].iter();
            let next = rest.next();
            let op = &event.body["op"];
            let moves = next.is_some_and(|next| {
                (next.is("conversation_began") || next.is("pointer_moved"))
                    && next.body["op"] == *op
            });
            if !moves {
                let what = format!(
                    "conversation {} was sealed, but none took its place",
                    event.conversation
                );
                found.add(P, story.agent, what, &[event.seq]);
            } else if op.is_string() {
                let whole = rest.take_while(|next| SWITCH.contains(&next.kind.as_str()));
                let mut whole = whole.filter(|next| next.is("reset_stepped"));
                let is_whole =
                    whole.any(|next| next.text("step") == "switch" && next.body["op"] == *op);
                if !is_whole {
                    let what = "another conversation became current, but the reset does not say so";
                    found.add(P, story.agent, what.to_owned(), &[event.seq]);
                }
            }
        }
        let began = event.is("conversation_began") && event.body["parent"].is_string();
        if began || event.is("pointer_moved") {
            let before = index.checked_sub(1).map(|before| &story.events[before]);
            let sealed = before.is_some_and(|before| before.is("conversation_sealed"));
            let old = story.current_at(event.seq - 1);
            let of_old = before.is_some_and(|before| Some(before.conversation.as_str()) == old);
            if !sealed || !of_old {
                let what = "another conversation became current, but the old one was not sealed";
                found.add(P, story.agent, what.to_owned(), &[event.seq]);
            }
        }
    }
}

fn in_the_current_one(story: &Story<'_>, found: &mut Found) {
    let wrong = |event: &&Event| {
        let current = story.current_at(event.seq);
        CURRENT_ONLY.contains(&event.kind.as_str()) && current != Some(&event.conversation)
    };
    for event in story.events.iter().filter(wrong) {
        let what = format!(
            "`{}` in a conversation that is not the current one",
            event.kind
        );
        found.add(P, story.agent, what, &[event.seq]);
    }
}

fn one_reset(reset: &Reset<'_>, story: &Story<'_>, found: &mut Found) {
    let op = reset.op;
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    if reset.began.len() != 1 {
        wrong(
            format!("reset {op} began {} times", reset.began.len()),
            &reset.began,
        );
    }
    let orders: Vec<usize> = reset
        .steps
        .iter()
        .filter_map(|(_, step)| STEPS.iter().position(|known| known == step))
        .collect();
    let at: Vec<u64> = reset.steps.iter().map(|(seq, _)| *seq).collect();
    if !orders.is_sorted_by(|a, b| a < b) || orders.len() != reset.steps.len() {
        wrong(format!("the steps of reset {op} are out of order"), &at);
    }
    let moves = story.events.iter().filter(|event| {
        let is_move = event.is("conversation_began") || event.is("pointer_moved");
        is_move && event.text("op") == op
    });
    let moves: Vec<u64> = moves.map(|event| event.seq).collect();
    let ends: Vec<u64> = reset.ended.iter().map(|(seq, _, _)| *seq).collect();
    let withdrawals: Vec<u64> = reset.withdrawn.iter().map(|(seq, _)| *seq).collect();
    match (ends.len(), withdrawals.len()) {
        (1, 0) if moves.len() == 1 => {}
        (1, 0) => wrong(
            format!("reset {op} moved to {} conversations", moves.len()),
            &moves,
        ),
        (0, 1) if moves.is_empty() => {}
        (0, 1) => wrong(format!("reset {op} was withdrawn, but moved"), &moves),
        // The rest is done when the agent is next used.
        (0, 0) if story.archived => {}
        (0, 0) => wrong(
            format!("reset {op} was neither ended nor withdrawn"),
            &reset.began,
        ),
        _ => {
            let at: Vec<u64> = ends.iter().chain(&withdrawals).copied().collect();
            wrong(format!("reset {op} ended more than once"), &at);
        }
    }
    let told = reset.steps.iter().any(|(_, step)| *step == "session_end");
    if let Some((seq, why)) = reset.withdrawn.first()
        && told
        && *why != "no_target"
    {
        wrong(
            format!("reset {op} was withdrawn after its point of no return"),
            &[*seq],
        );
    }
    if let Some((seq, old, new)) = reset.ended.first() {
        if reset.from != Some(old) {
            wrong(
                format!("reset {op} says that it left {old}, which was not current"),
                &[*seq],
            );
        }
        if story.current_at(*seq) != Some(new) {
            wrong(
                format!("reset {op} says that it led to {new}, which is not current"),
                &[*seq],
            );
        }
    }
}

/// No prompt is left in a conversation that is not current, except those that are set aside with it.
fn set_aside(story: &Story<'_>, found: &mut Found) {
    for (id, prompt) in &story.prompts {
        let home = prompt.queued.last().map(|(_, conversation)| *conversation);
        if prompt.status == PromptStatus::Waiting && home != story.current() {
            let at: Vec<u64> = prompt.queued.iter().map(|(seq, _)| *seq).collect();
            let what = format!("prompt {id} waits in a conversation that was left");
            found.add(P, story.agent, what, &at);
        }
        let brought_back = story.pointer.iter().rev().take(1).any(|(seq, to)| {
            let is_undo = story
                .event(*seq)
                .is_some_and(|event| event.is("pointer_moved"));
            is_undo && Some(*to) == home
        });
        if prompt.status == PromptStatus::Aside && brought_back {
            let what = format!("prompt {id} was not queued again with its conversation");
            found.add(P, story.agent, what, &prompt.aside);
        }
    }
}

fn shown(story: &Story<'_>, show: &Value, found: &mut Found) {
    let Some(head) = show["head"].as_u64() else {
        return;
    };
    let then = story.up_to(head);
    let current = then.current();
    if show["conversation"]["id"].as_str() != current {
        let shown = &show["conversation"]["id"];
        let what = format!("conversation {current:?} is current, but {shown} is shown");
        found.add(P, story.agent, what, &[head]);
    }
    let moves = then.pointer.len() as u64;
    if show["generation"]
        .as_u64()
        .is_some_and(|generation| generation != moves)
    {
        let what = format!(
            "the pointer has moved {moves} times, but is shown as {}",
            show["generation"]
        );
        found.add(P, story.agent, what, &[head]);
    }
}

/// The client got the receipt; a repeated request gets the same one.
fn receipts(case: &Case<'_>, found: &mut Found) {
    let resets = ["reset", "undo", "redo", "rewind"];
    let told = case.evidence.orders.iter().filter(|order| {
        order.acknowledged && resets.contains(&order.verb.as_str()) && order.answer.is_object()
    });
    for order in told {
        let Some(story) = case.story(&order.agent) else {
            continue;
        };
        let op = order
            .op
            .as_deref()
            .or(order.answer["op"].as_str())
            .unwrap_or_default();
        let reset = story.resets.iter().find(|reset| reset.op == op);
        let Some(ended) = reset.and_then(|reset| reset.ended.first()) else {
            let what = format!("{} {op} was acknowledged, but is not on record", order.verb);
            found.add(P, story.agent, what, &[]);
            continue;
        };
        let (seq, old, new) = *ended;
        let answer = &order.answer;
        if answer["old"] != *old || answer["new"] != *new {
            let what = format!("the receipt of {op} differs from the journal");
            found.add(P, story.agent, what, &[seq]);
        }
        let began = reset
            .and_then(|reset| reset.began.first())
            .copied()
            .unwrap_or(seq);
        let span = story
            .events
            .iter()
            .filter(|event| event.seq > began && event.seq < seq);
        let aside = span.filter(|event| event.is("prompts_set_aside"));
        let aside: BTreeSet<&str> = aside.flat_map(|event| event.list("prompts")).collect();
        let listed = answer["set_aside"].as_array().into_iter().flatten();
        let listed: BTreeSet<&str> = listed.filter_map(Value::as_str).collect();
        if aside != listed {
            let what = format!("{op} set aside {aside:?}, but its receipt lists {listed:?}");
            found.add(P, story.agent, what, &[seq]);
        }
    }
}
