//! Anthropic: the marks of prompt caching, at most four and well-formed.

use serde_json::Value;

use super::super::shape::{given, list_at, text_at};
use super::super::violation::Report;

const MOST: usize = 4;

pub(super) fn check(report: &mut Report, body: &Value) {
    let marks = collect(body);
    report.require(
        marks.len() <= MOST,
        "too_many_cache_controls",
        "$",
        format!("{} marks, at most {MOST} are taken", marks.len()),
    );
    let mut short_seen = false;
    for (path, mark) in &marks {
        let ttl = given(mark, "ttl").map_or(Some("5m"), Value::as_str);
        let known = mark
            .as_object()
            .is_some_and(|map| map.keys().all(|key| matches!(key.as_str(), "type" | "ttl")));
        report.require(
            known && text_at(mark, "type") == Some("ephemeral") && matches!(ttl, Some("5m" | "1h")),
            "bad_cache_control",
            path,
            format!("{mark} is not ephemeral with a ttl of 5m or 1h"),
        );
        report.require(
            ttl != Some("1h") || !short_seen,
            "cache_ttl_order",
            path,
            "a mark of 1h must not come after one of 5m",
        );
        short_seen |= ttl == Some("5m");
    }
}

/// All marks in the order in which the prompt is put together: tools, system, messages. Tool
/// inputs are not searched, as a key of the same name may stand there as plain data.
fn collect(body: &Value) -> Vec<(String, &Value)> {
    let mut marks = Vec::new();
    let mut take = |path: String, holder| {
        if let Some(mark) = given(holder, "cache_control") {
            marks.push((format!("{path}.cache_control"), mark));
        }
    };
    for key in ["tools", "system"] {
        for (index, one) in list_at(body, key).iter().enumerate() {
            take(format!("{key}[{index}]"), one);
        }
    }
    for (index, message) in list_at(body, "messages").iter().enumerate() {
        for (place, block) in list_at(message, "content").iter().enumerate() {
            let path = format!("messages[{index}].content[{place}]");
            for (inner, one) in list_at(block, "content").iter().enumerate() {
                take(format!("{path}.content[{inner}]"), one);
            }
            take(path, block);
        }
    }
    // Automatic caching puts its mark on the last block.
    take("$".to_owned(), body);
    marks
}
