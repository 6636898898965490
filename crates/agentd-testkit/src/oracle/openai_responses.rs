//! OpenAI Responses (`POST /v1/responses`), used without state: the whole conversation in
//! `input`, nothing stored. Items and their order have files of their own.

mod items;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::HashSet;

use serde_json::Value;

use super::media;
use super::openai::{preferences, settings, tool_name, tools};
use super::shape::{given, has_text, kind, known_fields, list_at, text_at};
use super::violation::{Report, Verdict};

/// The name of every rule that [`check`] can report.
pub const RULES: &[&str] = &[
    "bad_arguments",
    "bad_call_id",
    "bad_content",
    "bad_file",
    "bad_image",
    "bad_input",
    "bad_item_id",
    "bad_max_tokens",
    "bad_output",
    "bad_parameters",
    "bad_part",
    "bad_role",
    "bad_sampling",
    "bad_search_call",
    "bad_service_tier",
    "bad_status",
    "bad_text",
    "bad_tool_choice",
    "bad_tool_name",
    "bad_tools",
    "bad_verbosity",
    "blank_instructions",
    "blank_text",
    "body_not_object",
    "duplicate_call_id",
    "duplicate_item_id",
    "duplicate_output",
    "duplicate_tool",
    "empty_content",
    "empty_input",
    "files_too_large",
    "first_not_user",
    "late_output",
    "missing_model",
    "orphan_output",
    "part_in_wrong_role",
    "reasoning_with_content",
    "reasoning_without_encrypted_content",
    "reasoning_without_follower",
    "reasoning_without_summary",
    "schema_array_without_items",
    "schema_not_object",
    "schema_not_strict",
    "schema_root_choice",
    "schema_without_properties",
    "stateful_field",
    "store_not_false",
    "stream_options_without_stream",
    "too_many_files",
    "too_many_tools",
    "tool_choice_without_tools",
    "tools_missing",
    "trailing_assistant",
    "unanswered_call",
    "unknown_field",
    "unknown_item_type",
    "unsupported_service_tier",
    "unsupported_verbosity",
];

const FIELDS: &[&str] = &[
    "background",
    "client_metadata",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Tools that run at OpenAI or have a shape of their own; their settings are not judged here.
const OTHER_TOOLS: &[&str] = &[
    "apply_patch",
    "code_interpreter",
    "computer_use_preview",
    "custom",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "web_search",
    "web_search_preview",
];

/// The API refuses a smaller `max_output_tokens`.
const LEAST_OUTPUT: u64 = 16;

/// Judges a request body of the Responses API.
pub fn check(body: &Value) -> Verdict {
    let mut report = Report::default();
    if body.is_object() {
        whole(&mut report, body);
    } else {
        report.add("body_not_object", "$", kind(Some(body)));
    }
    report.verdict()
}

fn whole(report: &mut Report, body: &Value) {
    known_fields(report, body, "$", FIELDS);
    report.require(
        has_text(body, "model"),
        "missing_model",
        "model",
        "model must be named",
    );
    settings(report, body, &["max_output_tokens"], LEAST_OUTPUT);
    if let Some(text) = given(body, "text") {
        report.require(text.is_object(), "bad_text", "text", kind(Some(text)));
        known_fields(report, text, "text", &["format", "verbosity"]);
    }
    let verbosity = body.get("text").and_then(|text| text.get("verbosity"));
    preferences(report, body, verbosity, "text.verbosity");
    stateless(report, body);
    if given(body, "instructions").is_some() {
        report.require(
            has_text(body, "instructions"),
            "blank_instructions",
            "instructions",
            "leave them out instead of sending them blank",
        );
    }
    check_tools(report, body);
    match body.get("input").and_then(Value::as_array) {
        None => report.add("bad_input", "input", kind(body.get("input"))),
        Some(items) if items.is_empty() => {
            report.add("empty_input", "input", "at least one item");
        }
        Some(items) => {
            items::check(report, items);
            media::check(report, items, &media::OPENAI);
            turns::check(report, items);
        }
    }
}

fn stateless(report: &mut Report, body: &Value) {
    report.require(
        body.get("store") == Some(&Value::Bool(false)),
        "store_not_false",
        "store",
        "the default is to store",
    );
    for key in ["previous_response_id", "conversation"] {
        report.require(
            given(body, key).is_none(),
            "stateful_field",
            key,
            "nothing was stored to go on from",
        );
    }
}

fn check_tools(report: &mut Report, body: &Value) {
    let names = tools(report, body, |report, tool, path| {
        match text_at(tool, "type") {
            Some("function") => return Some(tool),
            Some("namespace") => namespace(report, tool, path),
            Some(name) if OTHER_TOOLS.contains(&name) => {}
            name => report.add("bad_tools", path, format!("unknown type {name:?}")),
        }
        None
    });
    let more = list_at(body, "input").iter().any(items::is_tools);
    let empty = list_at(body, "tools").is_empty() && !more;
    if let Some(choice) = given(body, "tool_choice") {
        check_choice(report, choice, empty, &names);
    }
    for (index, item) in list_at(body, "input").iter().enumerate() {
        let used = matches!(
            text_at(item, "type"),
            Some("function_call" | "function_call_output")
        );
        report.require(
            !used || !empty,
            "tools_missing",
            format!("input[{index}]"),
            "calls need the tools to be defined",
        );
    }
}

/// Functions under a common name.
fn namespace(report: &mut Report, tool: &Value, path: &str) {
    known_fields(
        report,
        tool,
        path,
        &["description", "name", "tools", "type"],
    );
    tool_name(report, tool, path);
    tools(report, tool, |report, tool, path| {
        match text_at(tool, "type") {
            Some("function") => return Some(tool),
            Some("custom") => {}
            name => report.add("bad_tools", path, format!("{name:?} in a namespace")),
        }
        None
    });
}

fn check_choice(report: &mut Report, choice: &Value, empty: bool, names: &HashSet<&str>) {
    let word = choice.as_str();
    // Nothing has to be called with these two, so they stand without tools as well.
    if matches!(word, Some("auto" | "none")) {
        return;
    }
    report.require(
        !empty,
        "tool_choice_without_tools",
        "tool_choice",
        "there is nothing to call",
    );
    let fine = match text_at(choice, "type") {
        Some("function") => text_at(choice, "name").is_some_and(|name| names.contains(name)),
        Some("allowed_tools") => choice.get("tools").is_some_and(Value::is_array),
        Some(name) => OTHER_TOOLS.contains(&name),
        None => word == Some("required"),
    };
    report.require(
        fine || empty,
        "bad_tool_choice",
        "tool_choice",
        format!("{choice} is not none, auto, required or a defined tool"),
    );
}
