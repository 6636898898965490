//! What OpenAI's two request formats have in common: sampling, streaming, functions, images.

use std::collections::HashSet;

use serde_json::Value;

use super::schema;
use super::shape::{given, is_base64, is_word, kind, list_at, number_within, text_at, whole_from};
use super::violation::Report;

/// More definitions are answered with "array too long".
const MOST_TOOLS: usize = 128;

/// Longest id of a call, in characters.
const MAX_ID: usize = 64;

pub(super) fn settings(report: &mut Report, body: &Value, limits: &[&'static str], least: u64) {
    for (key, high) in [("temperature", 2.0), ("top_p", 1.0)] {
        if let Some(value) = given(body, key) {
            report.require(
                number_within(value, 0.0, high),
                "bad_sampling",
                key,
                format!("{value} is not a number from 0 to {high}"),
            );
        }
    }
    for key in limits {
        if let Some(value) = given(body, key) {
            report.require(
                whole_from(value, least),
                "bad_max_tokens",
                *key,
                format!("{value} is not a whole number of at least {least}"),
            );
        }
    }
    report.require(
        given(body, "stream_options").is_none() || body.get("stream") == Some(&Value::Bool(true)),
        "stream_options_without_stream",
        "stream_options",
        "only taken together with stream: true",
    );
}

/// Models that take another verbosity than `medium`. The API refuses it for all others.
fn takes_verbosity(model: &str) -> bool {
    model.starts_with("gpt-5") && !model.contains("chat")
}

/// Models that are served with priority. The API refuses it for all others.
fn takes_priority(model: &str) -> bool {
    let families = ["gpt-5", "gpt-4.1", "gpt-4o", "o3", "o4-mini"];
    families.iter().any(|name| model.starts_with(name)) && !model.contains("nano")
}

/// The verbosity, which the two formats have in different places, and the service tier.
pub(super) fn preferences(
    report: &mut Report,
    body: &Value,
    verbosity: Option<&Value>,
    path: &'static str,
) {
    let model = text_at(body, "model").unwrap_or_default();
    if let Some(value) = verbosity.filter(|value| !value.is_null()) {
        let level = value.as_str();
        report.require(
            matches!(level, Some("low" | "medium" | "high")),
            "bad_verbosity",
            path,
            format!("{value} is not low, medium or high"),
        );
        report.require(
            !matches!(level, Some("low" | "high")) || takes_verbosity(model),
            "unsupported_verbosity",
            path,
            format!("{model} takes medium only"),
        );
    }
    if let Some(value) = given(body, "service_tier") {
        let tier = value.as_str();
        report.require(
            matches!(
                tier,
                Some("auto" | "default" | "flex" | "scale" | "priority" | "fast")
            ),
            "bad_service_tier",
            "service_tier",
            format!("{value} is not a service tier"),
        );
        report.require(
            !matches!(tier, Some("priority" | "fast")) || takes_priority(model),
            "unsupported_service_tier",
            "service_tier",
            format!("{model} is not served with priority"),
        );
    }
}

/// Walks the tools; `function_of` finds the function's definition, or none for another kind of
/// tool. Answers the names of the functions.
pub(super) fn tools<'a>(
    report: &mut Report,
    body: &'a Value,
    function_of: impl Fn(&mut Report, &'a Value, &str) -> Option<&'a Value>,
) -> HashSet<&'a str> {
    let list = list_at(body, "tools");
    if let Some(value) = given(body, "tools") {
        report.require(value.is_array(), "bad_tools", "tools", kind(Some(value)));
    }
    report.require(
        list.len() <= MOST_TOOLS,
        "too_many_tools",
        "tools",
        format!("{} tools, at most {MOST_TOOLS} are taken", list.len()),
    );
    let mut names = HashSet::new();
    for (index, tool) in list.iter().enumerate() {
        let path = format!("tools[{index}]");
        let Some(function) = function_of(report, tool, &path) else {
            continue;
        };
        definition(report, function, &path);
        if let Some(name) = text_at(function, "name") {
            report.require(
                names.insert(name),
                "duplicate_tool",
                path,
                format!("{name:?} is defined twice"),
            );
        }
    }
    names
}

fn definition(report: &mut Report, function: &Value, path: &str) {
    tool_name(report, function, path);
    report.require(
        given(function, "description").is_none_or(Value::is_string),
        "bad_tools",
        path,
        "description must be a string",
    );
    let strict = given(function, "strict");
    report.require(
        strict.is_none_or(Value::is_boolean),
        "bad_tools",
        path,
        "strict must be a boolean",
    );
    let at = format!("{path}.parameters");
    match given(function, "parameters") {
        // A function without parameters may leave them out.
        None => {}
        Some(found) if found.is_object() => {
            schema::openai(report, found, &at, strict == Some(&Value::Bool(true)));
        }
        other => report.add("bad_parameters", at, kind(other)),
    }
}

pub(super) fn tool_name(report: &mut Report, holder: &Value, path: &str) {
    report.require(
        text_at(holder, "name").is_some_and(is_word),
        "bad_tool_name",
        format!("{path}.name"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
}

pub(super) fn arguments(report: &mut Report, holder: &Value, path: &str) {
    report.require(
        holder.get("arguments").is_some_and(Value::is_string),
        "bad_arguments",
        format!("{path}.arguments"),
        format!("must be a string, not {}", kind(holder.get("arguments"))),
    );
}

pub(super) fn is_call_id(id: &str) -> bool {
    !id.trim().is_empty() && id.chars().count() <= MAX_ID
}

/// A web address, or a data URL of one of the four image types.
pub(super) fn is_image_url(url: &str) -> bool {
    if let Some(rest) = url.strip_prefix("data:image/") {
        return rest.split_once(";base64,").is_some_and(|(name, data)| {
            matches!(name, "png" | "jpeg" | "jpg" | "webp" | "gif") && is_base64(data)
        });
    }
    let address = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    address.is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_urls() {
        assert!(is_image_url("https://example.org/a.png"));
        assert!(is_image_url("data:image/png;base64,aGk="));
        assert!(!is_image_url("data:image/bmp;base64,aGk="));
        assert!(!is_image_url("data:image/png;base64,"));
        assert!(!is_image_url("https://"));
        assert!(!is_image_url("/tmp/a.png"));
    }

    #[test]
    fn call_ids_are_counted_in_characters() {
        assert!(is_call_id(&"\u{e9}".repeat(64)));
        assert!(!is_call_id(&"a".repeat(65)));
        assert!(!is_call_id(" "));
    }
}
