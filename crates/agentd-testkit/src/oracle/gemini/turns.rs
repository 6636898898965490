//! Gemini: the order of contents, and every function call answered in the next content.

use serde_json::Value;

use super::super::shape::{given, list_at, text_at};
use super::super::violation::Report;

pub(super) fn check(report: &mut Report, contents: &[Value]) {
    let role = |content| text_at(content, "role").unwrap_or_default();
    report.require(
        contents.first().map(role) != Some("model"),
        "first_not_user",
        "contents[0]",
        "the first content must be the user's",
    );
    report.require(
        contents.last().map(role) != Some("model"),
        "trailing_model",
        format!("contents[{}]", contents.len().saturating_sub(1)),
        "the last content must be the user's",
    );
    let mut before: Option<&Value> = None;
    // The calls of the closest model content, until something has answered them.
    let mut open: Option<(usize, Vec<&Value>)> = None;
    for (index, content) in contents.iter().enumerate() {
        if role(content) == "model" {
            unanswered(report, open.take());
            let calls = held(content, "functionCall");
            let after_model = before.map(role) == Some("model");
            report.require(
                calls.is_empty() || !after_model,
                "call_after_model",
                format!("contents[{index}]"),
                "a call comes right after the user or a function response",
            );
            open = (!calls.is_empty()).then_some((index, calls));
        } else {
            let directly = before.map(role) == Some("model");
            let path = format!("contents[{index}]");
            answer(report, content, &path, directly, &mut open);
        }
        before = Some(content);
    }
    unanswered(report, open);
}

fn held<'a>(content: &'a Value, key: &str) -> Vec<&'a Value> {
    let parts = list_at(content, "parts").iter();
    parts.filter_map(|part| given(part, key)).collect()
}

fn unanswered(report: &mut Report, open: Option<(usize, Vec<&Value>)>) {
    if let Some((index, _)) = open {
        report.add(
            "unanswered_call",
            format!("contents[{index}]"),
            "function calls without responses in the next content",
        );
    }
}

/// Judges the responses of a user's content; `directly` is set when the model spoke right before.
fn answer(
    report: &mut Report,
    content: &Value,
    path: &str,
    directly: bool,
    open: &mut Option<(usize, Vec<&Value>)>,
) {
    let responses = held(content, "functionResponse");
    if responses.is_empty() {
        return;
    }
    let in_front = list_at(content, "parts")
        .iter()
        .take(responses.len())
        .all(|part| given(part, "functionResponse").is_some());
    report.require(
        in_front,
        "response_not_first",
        path,
        "responses come before all other parts",
    );
    match open.take() {
        Some((_, calls)) if directly => pair(report, &calls, &responses, path),
        Some(_) => report.add(
            "late_response",
            path,
            "the responses belong into the content right after the calls",
        ),
        None => report.add("orphan_response", path, "no calls right before"),
    }
}

fn pair(report: &mut Report, calls: &[&Value], responses: &[&Value], path: &str) {
    if calls.len() != responses.len() {
        report.add(
            "response_count_mismatch",
            path,
            format!("{} responses to {} calls", responses.len(), calls.len()),
        );
        return;
    }
    let mut left = calls.to_vec();
    for response in responses {
        let same = |call: &&Value, key| text_at(call, key) == text_at(response, key);
        let exact = |call: &&Value| same(call, "id") && same(call, "name");
        let named = text_at(response, "id").is_some();
        let found = left.iter().position(exact);
        // With the id right only the name can be wrong, and the other way round.
        let near = left.iter().position(|call| named && same(call, "id"));
        let detail = format!("{:?}", text_at(response, "name"));
        match found.or(near) {
            Some(place) => {
                left.swap_remove(place);
                report.require(found.is_some(), "response_name_mismatch", path, detail);
            }
            None => {
                let rule = if left.iter().any(|call| same(call, "name")) {
                    "response_id_mismatch"
                } else {
                    "response_name_mismatch"
                };
                report.add(rule, path, detail);
            }
        }
    }
}
