//! OpenAI Responses: the order of items, and every call answered before the next turn.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::shape::text_at;
use super::super::violation::Report;
use super::items::{Item, kind_of};

pub(super) fn check(report: &mut Report, items: &[Value]) {
    ends(report, items);
    outputs(report, items);
    for (index, item) in items.iter().enumerate() {
        // A reasoning item belongs to what the model did next, in the same answer.
        let follower = items.get(index + 1);
        report.require(
            kind_of(item) != Item::Reasoning || follower.is_some_and(by_assistant),
            "reasoning_without_follower",
            format!("input[{index}]"),
            "must be followed by a call, a message or more reasoning of the assistant",
        );
    }
}

fn by_assistant(item: &Value) -> bool {
    match kind_of(item) {
        Item::Call | Item::Reasoning | Item::Search => true,
        Item::Message => text_at(item, "role") == Some("assistant"),
        Item::Output | Item::Tools | Item::Unknown => false,
    }
}

fn ends(report: &mut Report, items: &[Value]) {
    let instructs = |item: &Value| {
        matches!(kind_of(item), Item::Message | Item::Tools)
            && matches!(text_at(item, "role"), Some("system" | "developer"))
    };
    let first = items.iter().enumerate().find(|(_, item)| !instructs(item));
    if let Some((index, item)) = first {
        report.require(
            !by_assistant(item) && kind_of(item) != Item::Output,
            "first_not_user",
            format!("input[{index}]"),
            "the conversation must begin with the user",
        );
    }
    report.require(
        !items.last().is_some_and(by_assistant),
        "trailing_assistant",
        format!("input[{}]", items.len().saturating_sub(1)),
        "the last item must be the user's or an output",
    );
}

/// Pairs calls and outputs. A new batch begins with every message, and with whatever the model
/// did after it had got outputs; a call and its output must stand in the same batch.
fn outputs(report: &mut Report, items: &[Value]) {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut answered = HashSet::new();
    let mut batch = 0;
    let mut before = None;
    for (index, item) in items.iter().enumerate() {
        let path = format!("input[{index}]");
        let kind = kind_of(item);
        let next_turn =
            matches!(kind, Item::Call | Item::Reasoning) && before == Some(Item::Output);
        if kind == Item::Message || next_turn {
            batch += 1;
        }
        before = Some(kind);
        let id = text_at(item, "call_id").unwrap_or_default();
        match kind {
            Item::Call => {
                calls.insert(id, batch);
            }
            Item::Output => match calls.get(id) {
                None => report.add(
                    "orphan_output",
                    path,
                    format!("{id:?} was not called before"),
                ),
                Some(_) if !answered.insert(id) => {
                    report.add("duplicate_output", path, format!("{id:?} again"));
                }
                Some(called) => report.require(
                    *called == batch,
                    "late_output",
                    path,
                    format!("the turn after the call {id:?} had already begun"),
                ),
            },
            _ => {}
        }
    }
    for (index, item) in items.iter().enumerate() {
        let id = text_at(item, "call_id").unwrap_or_default();
        report.require(
            kind_of(item) != Item::Call || answered.contains(id),
            "unanswered_call",
            format!("input[{index}]"),
            format!("{id:?} has no output after it"),
        );
    }
}
