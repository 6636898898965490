//! Google Gemini (`POST ...:generateContent`): the body as a whole and its settings. Parts, turns
//! and tools have files of their own. Field names are taken in camelCase only, as documented.

mod parts;
mod signatures;
#[cfg(test)]
mod tests;
mod tools;
mod turns;

use serde_json::Value;

use super::media;
use super::shape::{
    blank, given, has_text, kind, known_fields, list_at, number_within, text_at, whole_from,
};
use super::violation::{Report, Verdict};

pub use signatures::check_signatures;

/// The name of every rule that [`check`] can report.
pub const RULES: &[&str] = &[
    "bad_args",
    "bad_call_id",
    "bad_contents",
    "bad_file_data",
    "bad_generation_config",
    "bad_inline_data",
    "bad_max_tokens",
    "bad_parameters",
    "bad_part",
    "bad_parts",
    "bad_response",
    "bad_role",
    "bad_sampling",
    "bad_stop_sequences",
    "bad_system_instruction",
    "bad_thought_signature",
    "bad_tool_config",
    "bad_tool_name",
    "bad_tools",
    "blank_system_instruction",
    "blank_text",
    "body_not_object",
    "call_after_model",
    "call_outside_model",
    "duplicate_call_id",
    "duplicate_tool",
    "empty_contents",
    "empty_parts",
    "files_too_large",
    "first_not_user",
    "late_response",
    "orphan_response",
    "part_with_two_kinds",
    "part_without_data",
    "response_count_mismatch",
    "response_id_mismatch",
    "response_name_mismatch",
    "response_not_first",
    "response_outside_user",
    "schema_array_without_items",
    "schema_bad_enum",
    "schema_bad_type",
    "schema_not_object",
    "schema_required_undefined",
    "schema_unknown_keyword",
    "search_with_functions",
    "thought_outside_model",
    "thought_without_signature",
    "too_many_files",
    "tool_config_without_tools",
    "tools_missing",
    "trailing_model",
    "two_thinking_settings",
    "unanswered_call",
    "unknown_field",
];

const FIELDS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "serviceTier",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const CONFIG_FIELDS: &[&str] = &[
    "audioTimestamp",
    "candidateCount",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "imageConfig",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

/// Judges a request body of generateContent (and of its streaming sister).
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
    if let Some(system) = given(body, "systemInstruction") {
        check_system(report, system);
    }
    if let Some(config) = given(body, "generationConfig") {
        check_config(report, config);
    }
    tools::check(report, body);
    match body.get("contents").and_then(Value::as_array) {
        None => report.add("bad_contents", "contents", kind(body.get("contents"))),
        Some(contents) if contents.is_empty() => {
            report.add("empty_contents", "contents", "at least one content");
        }
        Some(contents) => {
            parts::check(report, contents);
            media::check(report, contents, &media::GEMINI);
            turns::check(report, contents);
        }
    }
}

fn check_system(report: &mut Report, system: &Value) {
    let path = "systemInstruction";
    known_fields(report, system, path, &["parts", "role"]);
    let parts = list_at(system, "parts");
    if parts.is_empty() {
        report.add("bad_system_instruction", path, "no parts");
    }
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}.parts[{index}]");
        match text_at(part, "text") {
            Some(text) => report.require(
                !blank(text),
                "blank_system_instruction",
                path,
                "blank text part",
            ),
            None => report.add("bad_system_instruction", path, "only text is taken"),
        }
    }
}

fn check_config(report: &mut Report, config: &Value) {
    let path = "generationConfig";
    if !config.is_object() {
        report.add("bad_generation_config", path, kind(Some(config)));
        return;
    }
    known_fields(report, config, path, CONFIG_FIELDS);
    if let Some(value) = given(config, "maxOutputTokens") {
        report.require(
            whole_from(value, 1),
            "bad_max_tokens",
            format!("{path}.maxOutputTokens"),
            format!("{value} is not a whole number of at least 1"),
        );
    }
    for (key, high) in [("temperature", 2.0), ("topP", 1.0)] {
        if let Some(value) = given(config, key) {
            report.require(
                number_within(value, 0.0, high),
                "bad_sampling",
                format!("{path}.{key}"),
                format!("{value} is not a number from 0 to {high}"),
            );
        }
    }
    if let Some(stops) = given(config, "stopSequences") {
        let fine = stops
            .as_array()
            .is_some_and(|list| list.len() <= 5 && list.iter().all(Value::is_string));
        report.require(
            fine,
            "bad_stop_sequences",
            format!("{path}.stopSequences"),
            "at most five strings",
        );
    }
    if let Some(thinking) = given(config, "thinkingConfig") {
        let both =
            given(thinking, "thinkingBudget").is_some() && has_text(thinking, "thinkingLevel");
        report.require(
            !both,
            "two_thinking_settings",
            format!("{path}.thinkingConfig"),
            "thinkingBudget and thinkingLevel exclude each other",
        );
    }
}
