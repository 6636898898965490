//! OpenAI Responses: every input item on its own, with its parts.

use std::collections::HashSet;

use serde_json::Value;

use super::super::media::is_pdf_url;
use super::super::openai::{arguments, is_call_id, is_image_url, tool_name};
use super::super::shape::{blank, given, has_text, is_word, kind, known_fields, text_at};
use super::super::violation::Report;

/// The kind of an item; a message may leave its type out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Message,
    Call,
    Output,
    Reasoning,
    Search,
    /// More tools, for the rest of the conversation.
    Tools,
    Unknown,
}

pub(super) fn kind_of(item: &Value) -> Item {
    match (item.get("type").map(Value::as_str), item.get("role")) {
        (None, Some(_)) | (Some(Some("message")), _) => Item::Message,
        (Some(Some("function_call")), _) => Item::Call,
        (Some(Some("function_call_output")), _) => Item::Output,
        (Some(Some("reasoning")), _) => Item::Reasoning,
        (Some(Some("web_search_call")), _) => Item::Search,
        (Some(Some("additional_tools")), _) => Item::Tools,
        _ => Item::Unknown,
    }
}

pub(super) fn is_tools(item: &Value) -> bool {
    kind_of(item) == Item::Tools
}

pub(super) fn check(report: &mut Report, items: &[Value]) {
    let mut ids = HashSet::new();
    let mut item_ids = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("input[{index}]");
        if let Some(id) = text_at(item, "id") {
            report.require(
                item_ids.insert(id),
                "duplicate_item_id",
                format!("{path}.id"),
                format!("{id:?} was used before"),
            );
        }
        match kind_of(item) {
            Item::Message => message(report, item, &path),
            Item::Call => {
                call(report, item, &path);
                if let Some(id) = text_at(item, "call_id") {
                    report.require(
                        ids.insert(id),
                        "duplicate_call_id",
                        &path,
                        format!("{id:?} was used before"),
                    );
                }
            }
            Item::Output => output(report, item, &path),
            Item::Reasoning => reasoning(report, item, &path),
            Item::Search => {
                search(report, item, &path);
                // It has more states than other items.
                continue;
            }
            Item::Tools => more_tools(report, item, &path),
            Item::Unknown => report.add(
                "unknown_item_type",
                &path,
                format!("{:?}", item.get("type")),
            ),
        }
        if let Some(status) = given(item, "status") {
            report.require(
                matches!(
                    status.as_str(),
                    Some("in_progress" | "completed" | "incomplete")
                ),
                "bad_status",
                path,
                format!("{status}"),
            );
        }
    }
}

/// Item ids carry their kind at the front; an id of another kind is refused.
fn item_id(report: &mut Report, item: &Value, prefix: &str, path: &str) {
    if let Some(id) = item.get("id") {
        report.require(
            id.as_str()
                .is_some_and(|id| is_word(id) && id.starts_with(prefix)),
            "bad_item_id",
            format!("{path}.id"),
            format!("{id} does not begin with {prefix:?} or is not a plain id"),
        );
    }
}

fn more_tools(report: &mut Report, item: &Value, path: &str) {
    known_fields(report, item, path, &["id", "role", "tools", "type"]);
    item_id(report, item, "at", path);
    report.require(
        text_at(item, "role") == Some("developer"),
        "bad_role",
        format!("{path}.role"),
        "tools are added by the developer",
    );
    let tools = item.get("tools").and_then(Value::as_array);
    report.require(
        tools.is_some_and(|tools| tools.iter().all(|tool| has_text(tool, "type"))),
        "bad_tools",
        format!("{path}.tools"),
        "must be a list of tools",
    );
}

fn message(report: &mut Report, item: &Value, path: &str) {
    let allowed = ["content", "id", "phase", "role", "status", "type"];
    known_fields(report, item, path, &allowed);
    item_id(report, item, "msg", path);
    let role = text_at(item, "role").unwrap_or_default();
    report.require(
        matches!(role, "user" | "assistant" | "system" | "developer"),
        "bad_role",
        format!("{path}.role"),
        format!("{role:?}"),
    );
    let path = format!("{path}.content");
    match item.get("content") {
        Some(Value::String(text)) => {
            report.require(!blank(text), "blank_text", path, "blank message");
        }
        Some(Value::Array(parts)) => {
            report.require(!parts.is_empty(), "empty_content", &path, "no parts");
            for (index, one) in parts.iter().enumerate() {
                part(
                    report,
                    one,
                    role == "assistant",
                    &format!("{path}[{index}]"),
                );
            }
        }
        other => report.add("bad_content", path, kind(other)),
    }
}

fn part(report: &mut Report, part: &Value, assistant: bool, path: &str) {
    let name = text_at(part, "type").unwrap_or_default();
    let (own, text) = match name {
        "input_text" => (!assistant, Some("text")),
        "input_image" | "input_file" => (!assistant, None),
        "output_text" => (assistant, Some("text")),
        "refusal" => (assistant, Some("refusal")),
        _ => {
            report.add("bad_part", path, format!("unknown type {name:?}"));
            return;
        }
    };
    report.require(
        own,
        "part_in_wrong_role",
        path,
        format!("{name}: input parts are the user's, output parts the assistant's"),
    );
    if let Some(key) = text {
        match text_at(part, key) {
            Some(text) => report.require(!blank(text), "blank_text", path, "blank part"),
            None => report.add("bad_part", path, format!("{key} must be a string")),
        }
    } else if name == "input_image" {
        report.require(
            text_at(part, "image_url").is_some_and(is_image_url) || has_text(part, "file_id"),
            "bad_image",
            path,
            "needs an image_url (web address or base64 data URL) or a file_id",
        );
    } else {
        let named = ["file_data", "file_id", "file_url"];
        report.require(
            named.iter().any(|key| has_text(part, key)),
            "bad_part",
            path,
            "a file needs its data, id or address",
        );
        if let Some(data) = text_at(part, "file_data") {
            report.require(
                has_text(part, "filename") && is_pdf_url(data),
                "bad_file",
                path,
                "file_data is a data URL of a PDF, with a filename",
            );
        }
    }
}

fn call_id(report: &mut Report, item: &Value, path: &str) {
    report.require(
        text_at(item, "call_id").is_some_and(is_call_id),
        "bad_call_id",
        format!("{path}.call_id"),
        "must be a string of 1 to 64 characters",
    );
}

fn call(report: &mut Report, item: &Value, path: &str) {
    let allowed = ["arguments", "call_id", "id", "name", "status", "type"];
    known_fields(report, item, path, &allowed);
    item_id(report, item, "fc", path);
    call_id(report, item, path);
    tool_name(report, item, path);
    arguments(report, item, path);
}

fn output(report: &mut Report, item: &Value, path: &str) {
    let allowed = ["call_id", "id", "output", "status", "type"];
    known_fields(report, item, path, &allowed);
    item_id(report, item, "fc", path);
    call_id(report, item, path);
    let path = format!("{path}.output");
    match item.get("output") {
        // A tool may well have printed nothing, so a blank string is fine here.
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            report.require(!parts.is_empty(), "bad_output", &path, "no parts");
            for (index, one) in parts.iter().enumerate() {
                part(report, one, false, &format!("{path}[{index}]"));
            }
        }
        other => report.add("bad_output", path, kind(other)),
    }
}

fn search(report: &mut Report, item: &Value, path: &str) {
    known_fields(report, item, path, &["action", "id", "status", "type"]);
    item_id(report, item, "ws", path);
    let has_status = matches!(
        text_at(item, "status"),
        Some("in_progress" | "searching" | "completed" | "failed")
    );
    let action = item
        .get("action")
        .and_then(|action| text_at(action, "type"));
    report.require(
        has_text(item, "id") && has_status && action.is_some(),
        "bad_search_call",
        path,
        "a search comes back as it was, with its id, status and action",
    );
}

fn reasoning(report: &mut Report, item: &Value, path: &str) {
    let allowed = [
        "content",
        "encrypted_content",
        "id",
        "status",
        "summary",
        "type",
    ];
    known_fields(report, item, path, &allowed);
    report.require(
        item.get("id").is_some(),
        "bad_item_id",
        path,
        "a reasoning item needs its id",
    );
    item_id(report, item, "rs", path);
    report.require(
        has_text(item, "encrypted_content"),
        "reasoning_without_encrypted_content",
        path,
        "nothing is stored, so the content itself must come back",
    );
    let summary = item.get("summary").and_then(Value::as_array);
    let fine = summary.is_some_and(|list| {
        list.iter().all(|one| {
            text_at(one, "type") == Some("summary_text") && text_at(one, "text").is_some()
        })
    });
    report.require(
        fine,
        "reasoning_without_summary",
        path,
        "summary must be an array of summary_text, empty if there is none",
    );
    let content = given(item, "content");
    report.require(
        content.is_none_or(|value| value.as_array().is_some_and(Vec::is_empty)),
        "reasoning_with_content",
        path,
        "open reasoning text is not taken as input",
    );
}
