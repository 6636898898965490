//! Anthropic: the order of turns, and every tool_use answered in the very next message.

use std::collections::HashSet;
use std::slice;

use serde_json::Value;

use super::super::shape::{list_at, text_at};
use super::super::violation::Report;

/// Neighbouring messages of one role; the API reads them as one turn.
struct Run<'a> {
    role: &'a str,
    start: usize,
    messages: &'a [Value],
}

impl<'a> Run<'a> {
    /// The blocks of the run in order, each with the place of its message and its own place.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, &'a Value)> {
        let start = self.start;
        let messages = self.messages.iter().enumerate();
        messages.flat_map(move |(message, one)| {
            let blocks = match one.get("content") {
                // Content of one string stands for one text block.
                Some(text @ Value::String(_)) => slice::from_ref(text),
                _ => list_at(one, "content"),
            };
            let places = blocks.iter().enumerate();
            places.map(move |(place, block)| (start + message, place, block))
        })
    }

    fn holds(&self, name: &str) -> bool {
        self.blocks()
            .any(|(_, _, block)| type_of(block) == Some(name))
    }
}

fn type_of(block: &Value) -> Option<&str> {
    match block {
        Value::String(_) => Some("text"),
        _ => text_at(block, "type"),
    }
}

pub(super) fn check(report: &mut Report, body: &Value, messages: &[Value]) {
    let runs = split(messages);
    report.require(
        runs.first().is_some_and(|run| run.role != "assistant"),
        "first_not_user",
        "messages[0]",
        "the first message must be the user's",
    );
    report.require(
        runs.last().is_some_and(|run| run.role != "assistant"),
        "trailing_assistant",
        format!("messages[{}]", messages.len().saturating_sub(1)),
        "the last message must be the user's",
    );
    let mut before: Option<&Run<'_>> = None;
    for run in &runs {
        if run.role == "assistant" {
            tools_at_end(report, run);
        } else {
            answers(report, before, run);
        }
        before = Some(run);
    }
    if let Some(run) = before.filter(|run| run.role == "assistant") {
        unanswered(report, run, &HashSet::new());
    }
    thinking_in_loop(report, body, &runs);
}

fn split(messages: &[Value]) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for part in messages.chunk_by(|left, right| left.get("role") == right.get("role")) {
        runs.push(Run {
            role: part
                .first()
                .and_then(|one| text_at(one, "role"))
                .unwrap_or_default(),
            start,
            messages: part,
        });
        start += part.len();
    }
    runs
}

/// The API takes text after a tool_use as a tool_use without an answer.
fn tools_at_end(report: &mut Report, run: &Run<'_>) {
    let mut called = false;
    for (message, place, block) in run.blocks() {
        match type_of(block) {
            Some("tool_use") => called = true,
            Some(name @ ("text" | "thinking" | "redacted_thinking")) => report.require(
                !called,
                "content_after_tool_use",
                format!("messages[{message}].content[{place}]"),
                format!("{name} after a tool_use of the same turn"),
            ),
            _ => {}
        }
    }
}

/// Compares the results of a user's run with the calls of the assistant's run before it.
fn answers(report: &mut Report, before: Option<&Run<'_>>, run: &Run<'_>) {
    let calls: HashSet<&str> = before.map(call_ids).unwrap_or_default();
    let mut seen = HashSet::new();
    let mut other_block = false;
    for (message, place, block) in run.blocks() {
        if type_of(block) != Some("tool_result") {
            other_block = true;
            continue;
        }
        let path = format!("messages[{message}].content[{place}]");
        let id = text_at(block, "tool_use_id").unwrap_or_default();
        if !calls.contains(id) {
            report.add(
                "orphan_tool_result",
                path,
                format!("{id:?} was not called in the assistant turn right before"),
            );
        } else if !seen.insert(id) {
            report.add("duplicate_tool_result", path, format!("{id:?} again"));
        } else if message != run.start {
            report.add(
                "late_tool_result",
                path,
                format!("{id:?} must be answered in the very next message"),
            );
        } else if other_block {
            report.add(
                "tool_result_not_first",
                path,
                "results come before all other blocks",
            );
        }
    }
    if let Some(before) = before {
        unanswered(report, before, &seen);
    }
}

fn unanswered(report: &mut Report, run: &Run<'_>, seen: &HashSet<&str>) {
    for (message, place, block) in run.blocks() {
        if run.role == "assistant" && type_of(block) == Some("tool_use") {
            let id = text_at(block, "id").unwrap_or_default();
            report.require(
                seen.contains(id),
                "unanswered_tool_use",
                format!("messages[{message}].content[{place}]"),
                format!("{id:?} has no tool_result right after it"),
            );
        }
    }
}

fn call_ids<'a>(run: &Run<'a>) -> HashSet<&'a str> {
    let calls = run
        .blocks()
        .filter(|(_, _, block)| run.role == "assistant" && type_of(block) == Some("tool_use"));
    calls
        .filter_map(|(_, _, block)| text_at(block, "id"))
        .collect()
}

/// With a thinking budget the current tool loop must have begun with thinking.
fn thinking_in_loop(report: &mut Report, body: &Value, runs: &[Run<'_>]) {
    let config = body.get("thinking").and_then(|one| text_at(one, "type"));
    if config != Some("enabled") {
        return;
    }
    let mut asked = None;
    for pair in runs.windows(2).rev().step_by(2) {
        let [assistant, user] = pair else { break };
        if assistant.role != "assistant" || !user.holds("tool_result") {
            break;
        }
        let first = assistant.blocks().next().map(|(_, _, block)| block);
        let name = first.and_then(|block| type_of(block));
        if matches!(name, Some("thinking" | "redacted_thinking")) {
            return;
        }
        asked = Some(assistant.start);
    }
    if let Some(start) = asked {
        report.add(
            "thinking_missing_in_loop",
            format!("messages[{start}]"),
            "thinking is enabled, but the tool loop under way has no thinking block at its front",
        );
    }
}
