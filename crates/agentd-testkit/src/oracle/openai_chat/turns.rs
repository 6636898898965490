//! OpenAI Chat: who speaks first and last, and every call answered right after its message.

use std::collections::HashSet;

use serde_json::Value;

use super::super::shape::{list_at, text_at};
use super::super::violation::Report;

pub(super) fn check(report: &mut Report, messages: &[Value]) {
    ends(report, messages);
    let mut open = Open::default();
    for (index, message) in messages.iter().enumerate() {
        match text_at(message, "role") {
            Some("assistant") => {
                open.close(report);
                open = Open::new(index, message);
            }
            Some("tool") => open.answer(report, index, message),
            _ => open.interrupted = true,
        }
    }
    open.close(report);
}

fn ends(report: &mut Report, messages: &[Value]) {
    let role = |message| text_at(message, "role").unwrap_or_default();
    let first = messages
        .iter()
        .position(|one| !matches!(role(one), "system" | "developer"));
    if let Some(index) = first {
        report.require(
            !matches!(messages.get(index).map(role), Some("assistant" | "tool")),
            "first_not_user",
            format!("messages[{index}]"),
            "the conversation must begin with the user",
        );
    }
    report.require(
        !matches!(
            messages.last().map(role),
            Some("assistant" | "system" | "developer")
        ),
        "last_not_user_or_tool",
        format!("messages[{}]", messages.len().saturating_sub(1)),
        "the last message must be the user's or a tool's",
    );
}

/// The calls of the closest assistant message, and what came after it.
#[derive(Default)]
struct Open<'a> {
    calls: Vec<(&'a str, String)>,
    answered: HashSet<&'a str>,
    interrupted: bool,
}

impl<'a> Open<'a> {
    fn new(index: usize, message: &'a Value) -> Self {
        let calls = list_at(message, "tool_calls").iter().enumerate();
        let calls = calls.filter_map(|(place, call)| {
            let path = format!("messages[{index}].tool_calls[{place}]");
            text_at(call, "id").map(|id| (id, path))
        });
        Self {
            calls: calls.collect(),
            ..Self::default()
        }
    }

    fn answer(&mut self, report: &mut Report, index: usize, message: &'a Value) {
        let path = format!("messages[{index}]");
        let id = text_at(message, "tool_call_id").unwrap_or_default();
        if !self.calls.iter().any(|(call, _)| *call == id) {
            report.add(
                "orphan_tool_message",
                path,
                format!("{id:?} is not a call of the assistant message before"),
            );
        } else if !self.answered.insert(id) {
            report.add("duplicate_tool_message", path, format!("{id:?} again"));
        } else if self.interrupted {
            report.add(
                "late_tool_message",
                path,
                "another message stands between the call and its answer",
            );
        }
    }

    fn close(&self, report: &mut Report) {
        for (id, path) in &self.calls {
            report.require(
                self.answered.contains(id),
                "unanswered_tool_call",
                path,
                format!("{id:?} has no tool message right after it"),
            );
        }
    }
}
