//! OpenAI Chat: every message on its own, with its content and its calls.

use std::collections::HashSet;

use serde_json::Value;

use super::super::media::is_pdf_url;
use super::super::openai::{arguments, is_call_id, is_image_url, tool_name};
use super::super::shape::{blank, given, has_text, kind, known_fields, list_at, text_at};
use super::super::violation::Report;

/// The last two are not asked for, but services of this format send and take them.
const FIELDS: &[&str] = &[
    "audio",
    "content",
    "name",
    "refusal",
    "role",
    "tool_call_id",
    "tool_calls",
    "annotations",
    "reasoning_content",
];

pub(super) fn check(report: &mut Report, messages: &[Value]) {
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        known_fields(report, message, &path, FIELDS);
        let role = text_at(message, "role").unwrap_or_default();
        if let Some(name) = given(message, "name") {
            report.require(
                name.as_str().is_some_and(is_speaker),
                "bad_name",
                format!("{path}.name"),
                format!("{name} is not a plain name"),
            );
        }
        match role {
            "assistant" => assistant(report, message, &path, &mut ids),
            "system" | "developer" | "user" => content(report, message, role, &path),
            "tool" => tool(report, message, &path),
            _ => report.add("bad_role", format!("{path}.role"), format!("{role:?}")),
        }
        report.require(
            role == "assistant" || message.get("tool_calls").is_none(),
            "tool_calls_outside_assistant",
            format!("{path}.tool_calls"),
            format!("only the assistant calls tools, not {role:?}"),
        );
    }
}

fn is_speaker(name: &str) -> bool {
    let refused = |letter: char| letter.is_whitespace() || "<|\\/>".contains(letter);
    (1..=64).contains(&name.chars().count()) && !name.contains(refused)
}

fn content(report: &mut Report, message: &Value, role: &str, path: &str) {
    let path = format!("{path}.content");
    match message.get("content") {
        Some(Value::String(text)) => {
            report.require(!blank(text), "blank_text", path, "blank message");
        }
        Some(Value::Array(parts)) => {
            report.require(!parts.is_empty(), "empty_content", &path, "no parts");
            for (index, one) in parts.iter().enumerate() {
                part(report, one, role, &format!("{path}[{index}]"));
            }
        }
        other => report.add("bad_content", path, kind(other)),
    }
}

fn part(report: &mut Report, part: &Value, role: &str, path: &str) {
    let name = text_at(part, "type").unwrap_or_default();
    match (name, role) {
        ("text", _) => text(report, part, "text", path),
        ("refusal", "assistant") => text(report, part, "refusal", path),
        ("image_url", "user") => {
            let url = part
                .get("image_url")
                .and_then(|image| text_at(image, "url"));
            report.require(
                url.is_some_and(is_image_url),
                "bad_image",
                path,
                "image_url.url must be a web address or a base64 data URL",
            );
        }
        ("image_url", _) => report.add(
            "image_outside_user",
            path,
            format!("images stand in messages of the user, not of {role:?}"),
        ),
        ("file", "user") if part.get("file").is_some_and(Value::is_object) => {
            let file = part.get("file").unwrap_or(&Value::Null);
            let is_inline =
                has_text(file, "filename") && text_at(file, "file_data").is_some_and(is_pdf_url);
            report.require(
                is_inline || has_text(file, "file_id"),
                "bad_file",
                path,
                "a file needs a filename and a data URL of a PDF, or a file_id",
            );
        }
        ("input_audio" | "file", "user") => report.require(
            part.get(name).is_some_and(Value::is_object),
            "bad_part",
            path,
            format!("{name} must be an object"),
        ),
        _ => report.add("bad_part", path, format!("{name:?} for {role:?}")),
    }
}

fn text(report: &mut Report, part: &Value, key: &str, path: &str) {
    match text_at(part, key) {
        Some(text) => report.require(!blank(text), "blank_text", path, "blank part"),
        None => report.add("bad_part", path, format!("{key} must be a string")),
    }
}

fn assistant<'a>(report: &mut Report, message: &'a Value, path: &str, ids: &mut HashSet<&'a str>) {
    if given(message, "content").is_some() {
        content(report, message, "assistant", path);
    } else {
        let other = message.get("tool_calls").is_some()
            || has_text(message, "refusal")
            || given(message, "audio").is_some();
        report.require(
            other,
            "empty_assistant",
            path,
            "neither content nor tool_calls",
        );
    }
    match message.get("tool_calls") {
        None => {}
        Some(Value::Array(calls)) if calls.is_empty() => report.add(
            "empty_tool_calls",
            format!("{path}.tool_calls"),
            "leave it out instead of sending it empty",
        ),
        Some(Value::Array(_)) => {}
        other => report.add("bad_tool_calls", format!("{path}.tool_calls"), kind(other)),
    }
    for (place, call) in list_at(message, "tool_calls").iter().enumerate() {
        let path = format!("{path}.tool_calls[{place}]");
        tool_call(report, call, &path);
        if let Some(id) = text_at(call, "id") {
            report.require(
                ids.insert(id),
                "duplicate_tool_call_id",
                path,
                format!("{id:?} was used before"),
            );
        }
    }
}

fn tool_call(report: &mut Report, call: &Value, path: &str) {
    report.require(
        text_at(call, "id").is_some_and(is_call_id),
        "bad_tool_call_id",
        format!("{path}.id"),
        "must be a string of 1 to 64 characters",
    );
    match call.get("function").filter(|one| one.is_object()) {
        Some(function) if text_at(call, "type") == Some("function") => {
            let path = format!("{path}.function");
            tool_name(report, function, &path);
            arguments(report, function, &path);
        }
        _ => report.add(
            "bad_tool_calls",
            path,
            "must be {id, type: function, function: {..}}",
        ),
    }
}

fn tool(report: &mut Report, message: &Value, path: &str) {
    report.require(
        text_at(message, "tool_call_id").is_some_and(is_call_id),
        "bad_tool_call_id",
        format!("{path}.tool_call_id"),
        "must be a string of 1 to 64 characters",
    );
    // A tool may well have printed nothing, so a blank string is fine here.
    if !message.get("content").is_some_and(Value::is_string) {
        content(report, message, "tool", path);
    }
}
