//! Anthropic Messages (`POST /v1/messages`): the body as a whole, its system prompt and its
//! sampling and thinking settings. Blocks, turns and tools have files of their own.

mod blocks;
mod cache;
mod models;
mod server_tools;
#[cfg(test)]
mod tests;
mod tools;
mod turns;

use serde_json::Value;

use super::media;
use super::shape::{
    blank, given, has_text, kind, known_fields, number_within, text_at, whole_from,
};
use super::violation::{Report, Verdict};

pub use models::binds_thinking;

/// The name of every rule that [`check`] can report.
pub const RULES: &[&str] = &[
    "bad_block",
    "bad_cache_control",
    "bad_citation",
    "bad_content",
    "bad_document_source",
    "bad_image_data",
    "bad_image_media_type",
    "bad_image_source",
    "bad_input_schema",
    "bad_is_error",
    "bad_max_tokens",
    "bad_messages",
    "bad_redacted_thinking",
    "bad_role",
    "bad_sampling",
    "bad_search_result",
    "bad_server_tool",
    "bad_server_tool_use",
    "bad_service_tier",
    "bad_stop_sequences",
    "bad_system",
    "bad_thinking_config",
    "bad_tool_choice",
    "bad_tool_id",
    "bad_tool_input",
    "bad_tool_name",
    "bad_tool_result_content",
    "bad_tools",
    "blank_system",
    "blank_text",
    "block_in_wrong_role",
    "body_not_object",
    "cache_ttl_order",
    "content_after_tool_use",
    "duplicate_tool",
    "duplicate_tool_result",
    "duplicate_tool_use_id",
    "empty_content",
    "empty_messages",
    "error_result_not_text",
    "files_too_large",
    "first_not_user",
    "forced_tool_not_taken",
    "image_too_large",
    "late_tool_result",
    "missing_model",
    "orphan_server_result",
    "orphan_tool_result",
    "sampling_not_taken",
    "schema_not_object",
    "schema_root_choice",
    "thinking_at_end",
    "thinking_budget",
    "thinking_missing_in_loop",
    "thinking_not_adaptive",
    "thinking_outside_assistant",
    "thinking_with_forced_tool",
    "thinking_with_sampling",
    "thinking_without_signature",
    "too_many_cache_controls",
    "too_many_files",
    "tool_choice_without_tools",
    "tool_result_not_first",
    "tools_missing",
    "trailing_assistant",
    "unanswered_server_tool_use",
    "unanswered_tool_use",
    "unknown_block_type",
    "unknown_field",
];

const FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// The least thinking budget that the API takes.
const MIN_BUDGET: u64 = 1024;

/// Judges a request body of the Messages API.
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
    report.require(
        body.get("max_tokens")
            .is_some_and(|value| whole_from(value, 1)),
        "bad_max_tokens",
        "max_tokens",
        "max_tokens must be a whole number of at least 1",
    );
    if let Some(system) = body.get("system") {
        check_system(report, system);
    }
    check_sampling(report, body);
    if let Some(tier) = body.get("service_tier").filter(|tier| !tier.is_null()) {
        report.require(
            matches!(tier.as_str(), Some("auto" | "standard_only")),
            "bad_service_tier",
            "service_tier",
            format!("{tier} is not auto or standard_only"),
        );
    }
    check_thinking(report, body);
    models::check(report, body);
    tools::check(report, body);
    cache::check(report, body);
    match body.get("messages").and_then(Value::as_array) {
        None => report.add("bad_messages", "messages", kind(body.get("messages"))),
        Some(messages) if messages.is_empty() => {
            report.add("empty_messages", "messages", "at least one message");
        }
        Some(messages) => {
            blocks::check(report, messages);
            media::check(report, messages, &media::ANTHROPIC);
            server_tools::check(report, messages);
            turns::check(report, body, messages);
        }
    }
}

fn check_system(report: &mut Report, system: &Value) {
    match system {
        Value::String(text) => report.require(
            !blank(text),
            "blank_system",
            "system",
            "leave it out instead of sending it blank",
        ),
        Value::Array(list) => {
            report.require(!list.is_empty(), "blank_system", "system", "no blocks");
            for (index, block) in list.iter().enumerate() {
                let path = format!("system[{index}]");
                match (text_at(block, "type"), text_at(block, "text")) {
                    (Some("text"), Some(text)) => {
                        known_fields(report, block, &path, blocks::TEXT_FIELDS);
                        report.require(!blank(text), "blank_system", path, "blank text block");
                    }
                    _ => report.add("bad_system", path, "only text blocks are taken"),
                }
            }
        }
        other => report.add("bad_system", "system", kind(Some(other))),
    }
}

fn check_sampling(report: &mut Report, body: &Value) {
    for key in ["temperature", "top_p"] {
        if let Some(value) = body.get(key) {
            report.require(
                number_within(value, 0.0, 1.0),
                "bad_sampling",
                key,
                format!("{value} is not a number from 0 to 1"),
            );
        }
    }
    if let Some(value) = body.get("top_k") {
        report.require(
            whole_from(value, 0),
            "bad_sampling",
            "top_k",
            format!("{value} is not a whole number"),
        );
    }
    if let Some(stops) = body.get("stop_sequences") {
        let fine = stops.as_array().is_some_and(|list| {
            list.iter()
                .all(|one| one.as_str().is_some_and(|text| !blank(text)))
        });
        report.require(
            fine,
            "bad_stop_sequences",
            "stop_sequences",
            "each must be a string with something visible in it",
        );
    }
}

fn check_thinking(report: &mut Report, body: &Value) {
    let Some(thinking) = given(body, "thinking") else {
        return;
    };
    match text_at(thinking, "type") {
        Some("disabled") => return,
        Some("adaptive") => {}
        Some("enabled") => {
            let budget = thinking.get("budget_tokens").and_then(Value::as_u64);
            let limit = body.get("max_tokens").and_then(Value::as_u64);
            let fine = budget.is_some_and(|tokens| {
                tokens >= MIN_BUDGET && limit.is_none_or(|limit| tokens < limit)
            });
            report.require(
                fine,
                "thinking_budget",
                "thinking.budget_tokens",
                "must be at least 1024 and below max_tokens",
            );
        }
        _ => {
            report.add("bad_thinking_config", "thinking", "unknown type");
            return;
        }
    }
    let choice = given(body, "tool_choice").and_then(|choice| text_at(choice, "type"));
    report.require(
        !matches!(choice, Some("any" | "tool")),
        "thinking_with_forced_tool",
        "tool_choice",
        "thinking goes with tool_choice auto or none only",
    );
    let temperature = given(body, "temperature").and_then(Value::as_f64);
    report.require(
        temperature.is_none_or(|value| value == 1.0) && given(body, "top_k").is_none(),
        "thinking_with_sampling",
        "$",
        "thinking allows no other temperature than 1 and no top_k",
    );
}
