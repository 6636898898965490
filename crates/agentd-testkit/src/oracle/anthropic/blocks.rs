//! Anthropic: every message and content block on its own, whatever stands around it.

use std::collections::HashSet;

use serde_json::Value;

use super::super::media::is_pdf;
use super::super::shape::{
    blank, given, has_text, is_base64, is_word, kind, known_fields, list_at, text_at,
};
use super::super::violation::Report;

pub(super) const TEXT_FIELDS: &[&str] = &["cache_control", "citations", "text", "type"];

const DOCUMENT_FIELDS: &[&str] = &[
    "cache_control",
    "citations",
    "context",
    "source",
    "title",
    "type",
];
const MEDIA_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

const USER_BLOCKS: &[&str] = &[
    "container_upload",
    "document",
    "image",
    "search_result",
    "text",
    "tool_result",
];

/// What the model itself writes, with the results of tools that ran on Anthropic's side.
const ASSISTANT_BLOCKS: &[&str] = &[
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "server_tool_use",
    "text",
    "text_editor_code_execution_tool_result",
    "thinking",
    "tool_search_tool_result",
    "tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

const RESULT_BLOCKS: &[&str] = &[
    "document",
    "image",
    "search_result",
    "text",
    "tool_reference",
];

pub(super) fn check(report: &mut Report, messages: &[Value]) {
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        known_fields(report, message, &path, &["content", "role"]);
        let role = text_at(message, "role").unwrap_or_default();
        report.require(
            matches!(role, "user" | "assistant"),
            "bad_role",
            format!("{path}.role"),
            format!("{role:?} is neither user nor assistant"),
        );
        content(report, message, role, &path);
        for (place, block) in list_at(message, "content").iter().enumerate() {
            if let (Some("tool_use"), Some(id)) = (text_at(block, "type"), text_at(block, "id")) {
                report.require(
                    ids.insert(id),
                    "duplicate_tool_use_id",
                    format!("{path}.content[{place}].id"),
                    format!("{id:?} was used before"),
                );
            }
        }
    }
}

fn content(report: &mut Report, message: &Value, role: &str, path: &str) {
    let path = format!("{path}.content");
    match message.get("content") {
        Some(Value::String(text)) => {
            report.require(!blank(text), "blank_text", path, "blank message");
        }
        Some(Value::Array(list)) => {
            report.require(!list.is_empty(), "empty_content", &path, "no blocks");
            for (index, one) in list.iter().enumerate() {
                block(report, one, role, &format!("{path}[{index}]"));
            }
            // The API refuses an assistant message that stops while thinking.
            let last = list.last().and_then(|one| text_at(one, "type"));
            report.require(
                role != "assistant" || !matches!(last, Some("thinking" | "redacted_thinking")),
                "thinking_at_end",
                path,
                "an assistant message must not end with thinking",
            );
        }
        other => report.add("bad_content", path, kind(other)),
    }
}

fn block(report: &mut Report, block: &Value, role: &str, path: &str) {
    let Some(name) = text_at(block, "type") else {
        report.add("bad_block", path, "a block must be an object with a type");
        return;
    };
    if matches!(name, "thinking" | "redacted_thinking") {
        report.require(
            role == "assistant",
            "thinking_outside_assistant",
            path,
            "only the assistant thinks",
        );
    } else {
        let (own, other) = match role {
            "assistant" => (ASSISTANT_BLOCKS, USER_BLOCKS),
            _ => (USER_BLOCKS, ASSISTANT_BLOCKS),
        };
        if !own.contains(&name) {
            let rule = if other.contains(&name) {
                "block_in_wrong_role"
            } else {
                "unknown_block_type"
            };
            report.add(rule, path, format!("{name:?} in a message of {role:?}"));
        }
    }
    match name {
        "thinking" => thinking(report, block, path),
        "redacted_thinking" => {
            known_fields(report, block, path, &["data", "type"]);
            report.require(
                has_text(block, "data"),
                "bad_redacted_thinking",
                path,
                "data must be given",
            );
        }
        "tool_use" => tool_use(report, block, path),
        "tool_result" => tool_result(report, block, path),
        _ => plain(report, block, name, path),
    }
}

/// Blocks that may stand in a message and inside a tool result alike.
fn plain(report: &mut Report, block: &Value, name: &str, path: &str) {
    match name {
        "text" => {
            known_fields(report, block, path, TEXT_FIELDS);
            match text_at(block, "text") {
                Some(text) => report.require(!blank(text), "blank_text", path, "blank text block"),
                None => report.add("bad_block", path, "a text block needs a text string"),
            }
        }
        "image" => image(report, block, path),
        "document" => {
            known_fields(report, block, path, DOCUMENT_FIELDS);
            report.require(
                is_document(block.get("source").unwrap_or(&Value::Null)),
                "bad_document_source",
                path,
                "a PDF in base64, text, content, a url or a file",
            );
        }
        _ => {}
    }
}

fn is_document(source: &Value) -> bool {
    let media = text_at(source, "media_type");
    match text_at(source, "type") {
        Some("base64") => {
            media == Some("application/pdf") && text_at(source, "data").is_some_and(is_pdf)
        }
        Some("text") => media == Some("text/plain") && has_text(source, "data"),
        Some("url") => has_text(source, "url"),
        Some("file") => has_text(source, "file_id"),
        Some("content") => source.get("content").is_some(),
        _ => false,
    }
}

fn thinking(report: &mut Report, block: &Value, path: &str) {
    // cache_control is one of the fields refused here.
    known_fields(report, block, path, &["signature", "thinking", "type"]);
    report.require(
        block.get("thinking").is_some_and(Value::is_string),
        "bad_block",
        path,
        "a thinking block needs a thinking string",
    );
    report.require(
        has_text(block, "signature"),
        "thinking_without_signature",
        path,
        "the signature must come back as it was",
    );
}

fn image(report: &mut Report, block: &Value, path: &str) {
    known_fields(report, block, path, &["cache_control", "source", "type"]);
    let path = format!("{path}.source");
    let source = block.get("source").unwrap_or(&Value::Null);
    match text_at(source, "type") {
        Some("base64") => {
            let media = text_at(source, "media_type").unwrap_or_default();
            report.require(
                MEDIA_TYPES.contains(&media),
                "bad_image_media_type",
                &path,
                format!("{media:?} is not one of the four image types"),
            );
            report.require(
                text_at(source, "data").is_some_and(is_base64),
                "bad_image_data",
                path,
                "data must be plain base64 and not empty",
            );
        }
        Some("url") if has_text(source, "url") => {}
        Some("file") if has_text(source, "file_id") => {}
        _ => report.add(
            "bad_image_source",
            path,
            "base64, url or file, with its data",
        ),
    }
}

fn tool_use(report: &mut Report, block: &Value, path: &str) {
    let allowed = ["caller", "cache_control", "id", "input", "name", "type"];
    known_fields(report, block, path, &allowed);
    report.require(
        text_at(block, "id").is_some_and(is_word),
        "bad_tool_id",
        format!("{path}.id"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    report.require(
        text_at(block, "name").is_some_and(is_word),
        "bad_tool_name",
        format!("{path}.name"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    report.require(
        block.get("input").is_some_and(Value::is_object),
        "bad_tool_input",
        format!("{path}.input"),
        kind(block.get("input")),
    );
}

fn tool_result(report: &mut Report, block: &Value, path: &str) {
    let allowed = [
        "cache_control",
        "content",
        "is_error",
        "tool_use_id",
        "type",
    ];
    known_fields(report, block, path, &allowed);
    report.require(
        text_at(block, "tool_use_id").is_some_and(is_word),
        "bad_tool_id",
        format!("{path}.tool_use_id"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    let failed = given(block, "is_error");
    report.require(
        failed.is_none_or(Value::is_boolean),
        "bad_is_error",
        path,
        "is_error is a boolean",
    );
    match block.get("content") {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(list)) => {
            for (index, one) in list.iter().enumerate() {
                let path = format!("{path}.content[{index}]");
                let name = text_at(one, "type").unwrap_or_default();
                report.require(
                    RESULT_BLOCKS.contains(&name),
                    "bad_tool_result_content",
                    &path,
                    format!("{name:?} cannot stand in a tool result"),
                );
                report.require(
                    failed != Some(&Value::Bool(true)) || name == "text",
                    "error_result_not_text",
                    &path,
                    "a failed result holds text only",
                );
                plain(report, one, name, &path);
            }
        }
        other => report.add(
            "bad_tool_result_content",
            format!("{path}.content"),
            kind(other),
        ),
    }
}
