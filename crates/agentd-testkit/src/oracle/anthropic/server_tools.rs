//! Anthropic: tools that run on its side, and their calls and results in the history.

use std::collections::HashSet;

use serde_json::Value;

use super::super::shape::{given, has_text, known_fields, list_at, text_at};
use super::super::violation::Report;

/// The versions of the search tool.
const SEARCHES: &[&str] = &["web_search_20250305"];

const SEARCH_FIELDS: &[&str] = &[
    "allowed_domains",
    "blocked_domains",
    "cache_control",
    "max_uses",
    "name",
    "type",
    "user_location",
];

/// The definition of a tool with a type of its own.
pub(super) fn definition(report: &mut Report, tool: &Value, kind: &str, path: &str) {
    if !kind.starts_with("web_search") {
        return;
    }
    known_fields(report, tool, path, SEARCH_FIELDS);
    report.require(
        SEARCHES.contains(&kind) && text_at(tool, "name") == Some("web_search"),
        "bad_server_tool",
        path,
        "a search tool has a known version and the name web_search",
    );
}

/// Each call has its result behind it in the same message, and each result its call.
pub(super) fn check(report: &mut Report, messages: &[Value]) {
    for (index, message) in messages.iter().enumerate() {
        let mut open: Vec<(&str, String)> = Vec::new();
        let mut called = HashSet::new();
        for (place, block) in list_at(message, "content").iter().enumerate() {
            let path = format!("messages[{index}].content[{place}]");
            match text_at(block, "type") {
                Some("server_tool_use") => {
                    call(report, block, &path);
                    let id = text_at(block, "id").unwrap_or_default();
                    called.insert(id);
                    open.push((id, path));
                }
                Some("web_search_tool_result") => {
                    let id = text_at(block, "tool_use_id").unwrap_or_default();
                    report.require(
                        called.contains(id),
                        "orphan_server_result",
                        &path,
                        format!("{id:?} was not called before in the same message"),
                    );
                    open.retain(|(waiting, _)| *waiting != id);
                    result(report, block, &path);
                }
                Some("text") => citations(report, block, &path),
                _ => {}
            }
        }
        for (id, path) in open {
            report.add(
                "unanswered_server_tool_use",
                path,
                format!("{id:?} has no result in its message"),
            );
        }
    }
}

fn call(report: &mut Report, block: &Value, path: &str) {
    let allowed = ["cache_control", "id", "input", "name", "type"];
    known_fields(report, block, path, &allowed);
    let is_whole = text_at(block, "id").is_some_and(|id| id.starts_with("srvtoolu_"))
        && has_text(block, "name")
        && block.get("input").is_some_and(Value::is_object);
    report.require(
        is_whole,
        "bad_server_tool_use",
        path,
        "needs an id that begins with srvtoolu_, a name and an input object",
    );
}

fn result(report: &mut Report, block: &Value, path: &str) {
    let allowed = ["cache_control", "content", "tool_use_id", "type"];
    known_fields(report, block, path, &allowed);
    for found in list_at(block, "content") {
        let is_whole = text_at(found, "type") == Some("web_search_result")
            && has_text(found, "url")
            && has_text(found, "encrypted_content");
        report.require(
            is_whole,
            "bad_search_result",
            path,
            "each page comes back as it was, with its encrypted_content",
        );
    }
}

fn citations(report: &mut Report, block: &Value, path: &str) {
    if given(block, "citations").is_none() {
        return;
    }
    for citation in list_at(block, "citations") {
        let is_search = text_at(citation, "type") == Some("web_search_result_location");
        let is_whole = has_text(citation, "url") && has_text(citation, "encrypted_index");
        report.require(
            !is_search || is_whole,
            "bad_citation",
            path,
            "a citation comes back as it was, with its encrypted_index",
        );
    }
}
