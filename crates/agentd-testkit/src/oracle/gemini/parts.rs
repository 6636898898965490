//! Gemini: every content and part on its own, whatever stands around it.

use std::collections::HashSet;

use serde_json::Value;

use super::super::media::is_pdf;
use super::super::shape::{
    blank, given, has_text, is_base64, is_word, kind, known_fields, text_at,
};
use super::super::violation::Report;

/// A part holds exactly one of these.
const DATA: &[&str] = &[
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
];

/// And any of these with it.
const EXTRA: &[&str] = &[
    "mediaResolution",
    "thought",
    "thoughtSignature",
    "videoMetadata",
];

pub(super) fn check(report: &mut Report, contents: &[Value]) {
    for (index, content) in contents.iter().enumerate() {
        let path = format!("contents[{index}]");
        known_fields(report, content, &path, &["parts", "role"]);
        let role = text_at(content, "role").unwrap_or_default();
        report.require(
            matches!(role, "user" | "model"),
            "bad_role",
            format!("{path}.role"),
            format!("{role:?} is neither user nor model"),
        );
        let Some(parts) = content.get("parts").and_then(Value::as_array) else {
            let found = kind(content.get("parts"));
            report.add("bad_parts", format!("{path}.parts"), found);
            continue;
        };
        report.require(!parts.is_empty(), "empty_parts", &path, "no parts");
        let mut ids = HashSet::new();
        for (place, one) in parts.iter().enumerate() {
            let path = format!("{path}.parts[{place}]");
            part(report, one, role, &path);
            let id = one.get("functionCall").and_then(|call| text_at(call, "id"));
            if let Some(id) = id {
                report.require(
                    ids.insert(id),
                    "duplicate_call_id",
                    path,
                    format!("{id:?} twice in one content"),
                );
            }
        }
    }
}

fn part(report: &mut Report, part: &Value, role: &str, path: &str) {
    if !part.is_object() {
        report.add("bad_part", path, kind(Some(part)));
        return;
    }
    known_fields(report, part, path, &[DATA, EXTRA].concat());
    thought(report, part, role, path);
    let held: Vec<_> = DATA
        .iter()
        .filter_map(|key| given(part, key).map(|value| (*key, value)))
        .collect();
    match held.as_slice() {
        [] => report.add("part_without_data", path, "nothing but side information"),
        [one] => data(report, part, role, *one, path),
        _ => report.add("part_with_two_kinds", path, "a part holds one kind of data"),
    }
}

fn thought(report: &mut Report, part: &Value, role: &str, path: &str) {
    let thought = given(part, "thought");
    report.require(
        thought.is_none_or(Value::is_boolean),
        "bad_part",
        path,
        "thought must be a boolean",
    );
    let signature = given(part, "thoughtSignature");
    report.require(
        signature.is_none_or(is_signature),
        "bad_thought_signature",
        path,
        "must be base64 and not empty",
    );
    let thinks = thought == Some(&Value::Bool(true));
    report.require(
        role == "model" || (!thinks && signature.is_none()),
        "thought_outside_model",
        path,
        "only the model thinks",
    );
    report.require(
        !thinks || signature.is_some(),
        "thought_without_signature",
        path,
        "without its signature a thought is better left out",
    );
}

/// A bytes field: standard base64 or its form for addresses.
fn is_signature(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| is_base64(&text.replace('-', "+").replace('_', "/")))
}

fn data(report: &mut Report, part: &Value, role: &str, (key, value): (&str, &Value), path: &str) {
    let path = format!("{path}.{key}");
    match key {
        "text" => match value.as_str() {
            // The signature of an answer may come on an empty last part, to be sent back as is.
            Some(text) => report.require(
                !blank(text) || given(part, "thoughtSignature").is_some(),
                "blank_text",
                path,
                "blank text part",
            ),
            None => report.add("bad_part", path, kind(Some(value))),
        },
        "functionCall" => call(report, value, role, &path),
        "functionResponse" => response(report, value, role, &path),
        "inlineData" => inline_data(report, value, &path),
        "fileData" => report.require(
            has_text(value, "fileUri"),
            "bad_file_data",
            path,
            "fileUri must be given",
        ),
        _ => report.require(value.is_object(), "bad_part", path, kind(Some(value))),
    }
}

/// Images besides PDF. GIF is not among them.
const INLINE_TYPES: [&str; 5] = [
    "image/heic",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/webp",
];

fn inline_data(report: &mut Report, value: &Value, path: &str) {
    let media = text_at(value, "mimeType").unwrap_or_default();
    let data = text_at(value, "data").unwrap_or_default();
    let is_accepted = match media {
        "application/pdf" => is_pdf(data),
        media => INLINE_TYPES.contains(&media) && is_base64(data),
    };
    report.require(
        is_accepted,
        "bad_inline_data",
        path,
        "needs an accepted mimeType and base64 data of that type",
    );
}

/// Name and id, which a call and a response have in common.
fn head(report: &mut Report, value: &Value, path: &str) {
    report.require(
        text_at(value, "name").is_some_and(is_word),
        "bad_tool_name",
        format!("{path}.name"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    report.require(
        given(value, "id").is_none() || has_text(value, "id"),
        "bad_call_id",
        format!("{path}.id"),
        "must be a string with something in it, or left out",
    );
}

fn call(report: &mut Report, value: &Value, role: &str, path: &str) {
    known_fields(report, value, path, &["args", "id", "name"]);
    report.require(
        role == "model",
        "call_outside_model",
        path,
        format!("only the model calls functions, not {role:?}"),
    );
    head(report, value, path);
    report.require(
        given(value, "args").is_none_or(Value::is_object),
        "bad_args",
        format!("{path}.args"),
        kind(value.get("args")),
    );
}

fn response(report: &mut Report, value: &Value, role: &str, path: &str) {
    let allowed = [
        "id",
        "name",
        "parts",
        "response",
        "scheduling",
        "willContinue",
    ];
    known_fields(report, value, path, &allowed);
    report.require(
        role == "user",
        "response_outside_user",
        path,
        format!("responses are sent by the user, not by {role:?}"),
    );
    head(report, value, path);
    report.require(
        value.get("response").is_some_and(Value::is_object),
        "bad_response",
        format!("{path}.response"),
        kind(value.get("response")),
    );
    let media = given(value, "parts");
    report.require(
        media.is_none_or(Value::is_array),
        "bad_response",
        format!("{path}.parts"),
        kind(media),
    );
    for (index, one) in media
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.parts[{index}]");
        inline_data(report, one.get("inlineData").unwrap_or(&Value::Null), &path);
    }
}
