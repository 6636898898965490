//! OpenAI Chat Completions (`POST /v1/chat/completions`): the body as a whole and its tools.
//! Messages and their order have files of their own.

mod messages;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::HashSet;

use serde_json::Value;

use super::openai::{preferences, settings, tools};
use super::shape::{given, has_text, kind, known_fields, list_at, text_at};
use super::violation::{Report, Verdict};

/// The name of every rule that [`check`] can report.
pub const RULES: &[&str] = &[
    "bad_arguments",
    "bad_content",
    "bad_image",
    "bad_max_tokens",
    "bad_messages",
    "bad_name",
    "bad_parameters",
    "bad_part",
    "bad_role",
    "bad_sampling",
    "bad_service_tier",
    "bad_tool_call_id",
    "bad_tool_calls",
    "bad_tool_choice",
    "bad_tool_name",
    "bad_tools",
    "bad_verbosity",
    "blank_text",
    "body_not_object",
    "duplicate_tool",
    "duplicate_tool_call_id",
    "duplicate_tool_message",
    "empty_assistant",
    "empty_content",
    "empty_messages",
    "empty_tool_calls",
    "empty_tools",
    "first_not_user",
    "image_outside_user",
    "last_not_user_or_tool",
    "late_tool_message",
    "missing_model",
    "orphan_tool_message",
    "parallel_without_tools",
    "schema_array_without_items",
    "schema_not_object",
    "schema_not_strict",
    "schema_root_choice",
    "schema_without_properties",
    "stream_options_without_stream",
    "too_many_tools",
    "tool_calls_outside_assistant",
    "tool_choice_without_tools",
    "tools_missing",
    "two_token_limits",
    "unanswered_tool_call",
    "unknown_field",
    "unsupported_service_tier",
    "unsupported_verbosity",
];

const FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Judges a request body of the Chat Completions API.
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
    settings(report, body, &["max_tokens", "max_completion_tokens"], 1);
    preferences(report, body, body.get("verbosity"), "verbosity");
    report.require(
        given(body, "max_tokens").is_none() || given(body, "max_completion_tokens").is_none(),
        "two_token_limits",
        "max_tokens",
        "max_tokens and max_completion_tokens exclude each other",
    );
    check_tools(report, body);
    match body.get("messages").and_then(Value::as_array) {
        None => report.add("bad_messages", "messages", kind(body.get("messages"))),
        Some(messages) if messages.is_empty() => {
            report.add("empty_messages", "messages", "at least one message");
        }
        Some(messages) => {
            messages::check(report, messages);
            turns::check(report, messages);
        }
    }
}

fn check_tools(report: &mut Report, body: &Value) {
    let names = tools(report, body, |report, tool, path| {
        let function = tool.get("function").filter(|one| one.is_object());
        report.require(
            text_at(tool, "type") == Some("function") && function.is_some(),
            "bad_tools",
            path,
            "must be {type: function, function: {..}}",
        );
        function
    });
    if list_at(body, "tools").is_empty() {
        without_tools(report, body);
    } else if let Some(choice) = given(body, "tool_choice") {
        report.require(
            is_choice(choice, &names),
            "bad_tool_choice",
            "tool_choice",
            format!("{choice} is not none, auto, required or a defined function"),
        );
    }
}

fn without_tools(report: &mut Report, body: &Value) {
    report.require(
        !body.get("tools").is_some_and(Value::is_array),
        "empty_tools",
        "tools",
        "leave it out instead of sending it empty",
    );
    report.require(
        given(body, "tool_choice").is_none(),
        "tool_choice_without_tools",
        "tool_choice",
        "only allowed when tools are given",
    );
    report.require(
        given(body, "parallel_tool_calls").is_none(),
        "parallel_without_tools",
        "parallel_tool_calls",
        "only allowed when tools are given",
    );
    for (index, message) in list_at(body, "messages").iter().enumerate() {
        report.require(
            list_at(message, "tool_calls").is_empty() && text_at(message, "role") != Some("tool"),
            "tools_missing",
            format!("messages[{index}]"),
            "tool messages need the tools to be defined",
        );
    }
}

fn is_choice(choice: &Value, names: &HashSet<&str>) -> bool {
    if let Some(word) = choice.as_str() {
        return matches!(word, "none" | "auto" | "required");
    }
    match text_at(choice, "type") {
        Some("function") => choice
            .get("function")
            .and_then(|function| text_at(function, "name"))
            .is_some_and(|name| names.contains(name)),
        Some("allowed_tools") => choice.get("allowed_tools").is_some_and(Value::is_object),
        _ => false,
    }
}
