//! Anthropic: what the models from Claude 5.5 on do not take any more.

use super::super::shape::{given, text_at};
use super::super::violation::Report;
use serde_json::Value;

/// The models whose thinking is always adaptive, and is bound to the messages before it.
const MODELS: &[&str] = &[
    "claude-fable-5-1",
    "claude-haiku-5-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
];

/// Whether a model takes its thinking back only behind the messages that led to it.
pub fn binds_thinking(model: &str) -> bool {
    MODELS.contains(&model)
}

pub(super) fn check(report: &mut Report, body: &Value) {
    if !text_at(body, "model").is_some_and(binds_thinking) {
        return;
    }
    let thinking = given(body, "thinking").and_then(|thinking| text_at(thinking, "type"));
    report.require(
        matches!(thinking, None | Some("adaptive")),
        "thinking_not_adaptive",
        "thinking",
        "this model thinks by an effort; it takes no budget, and thinking cannot be off",
    );
    let choice = given(body, "tool_choice").and_then(|choice| text_at(choice, "type"));
    report.require(
        !matches!(choice, Some("any" | "tool")),
        "forced_tool_not_taken",
        "tool_choice",
        "this model cannot be made to call a tool",
    );
    let is_default = |value: &Value| value.as_f64() == Some(1.0);
    let samples = ["temperature", "top_p"];
    let other = samples
        .iter()
        .any(|key| given(body, key).is_some_and(|it| !is_default(it)));
    report.require(
        !other && given(body, "top_k").is_none(),
        "sampling_not_taken",
        "$",
        "this model takes no temperature, top_p or top_k",
    );
}
