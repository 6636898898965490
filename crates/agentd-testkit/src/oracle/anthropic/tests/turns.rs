//! For every rule about the order of turns a body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{assistant, call, chat, plain, result, round_trip, text, thinking, tooled, user};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    [bad_turns(), bad_thinking()].concat()
}

fn bad_turns() -> Vec<(&'static str, Value)> {
    let after_call = |tail: Value| {
        let mut messages = vec![user(json!("Hello")), assistant(json!([call("toolu_1")]))];
        messages.extend(tail.as_array().cloned().unwrap_or_default());
        tooled(json!(messages))
    };
    vec![
        (
            "first_not_user",
            chat(json!([assistant(json!("Hi")), user(json!("Hello"))])),
        ),
        (
            "trailing_assistant",
            chat(json!([user(json!("Hello")), assistant(json!("Hi"))])),
        ),
        (
            "unanswered_tool_use",
            after_call(json!([user(json!("Well?"))])),
        ),
        (
            "unanswered_tool_use",
            without(round_trip(), "/messages/2/content/0"),
        ),
        (
            "late_tool_result",
            after_call(json!([
                user(json!("Well?")),
                user(json!([result("toolu_1")]))
            ])),
        ),
        (
            "tool_result_not_first",
            after_call(json!([user(json!([text("Well?"), result("toolu_1")]))])),
        ),
        (
            "duplicate_tool_result",
            after_call(json!([user(json!([result("toolu_1"), result("toolu_1")]))])),
        ),
        (
            "orphan_tool_result",
            after_call(json!([user(json!([result("toolu_1"), result("toolu_2")]))])),
        ),
        (
            "orphan_tool_result",
            after_call(json!([
                user(json!([result("toolu_1")])),
                assistant(json!("Done.")),
                user(json!([result("toolu_1")])),
            ])),
        ),
        (
            "duplicate_tool_use_id",
            after_call(json!([
                user(json!([result("toolu_1")])),
                assistant(json!([call("toolu_1")])),
                user(json!([result("toolu_1")])),
            ])),
        ),
        (
            "content_after_tool_use",
            with(round_trip(), "/messages/1/content/-", text("Now.")),
        ),
        (
            "content_after_tool_use",
            after_call(json!([
                assistant(json!("Now.")),
                user(json!([result("toolu_1")])),
            ])),
        ),
    ]
}

fn bad_thinking() -> Vec<(&'static str, Value)> {
    let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let config = |config| with(plain(), "/thinking", config);
    vec![
        (
            "thinking_without_signature",
            with(thinking(), "/messages/1/content/0/signature", json!("")),
        ),
        (
            "bad_block",
            without(thinking(), "/messages/1/content/0/thinking"),
        ),
        (
            "bad_redacted_thinking",
            without(thinking(), "/messages/1/content/1/data"),
        ),
        (
            "thinking_outside_assistant",
            with(plain(), "/messages/0/content", json!([thought])),
        ),
        (
            "thinking_at_end",
            chat(json!([
                user(json!("Hello")),
                assistant(json!([thought])),
                user(json!("And?")),
            ])),
        ),
        (
            "thinking_missing_in_loop",
            with(
                round_trip(),
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 2000}),
            ),
        ),
        ("bad_thinking_config", config(json!({"type": "on"}))),
        (
            "thinking_budget",
            config(json!({"type": "enabled", "budget_tokens": 1023})),
        ),
        (
            "thinking_budget",
            config(json!({"type": "enabled", "budget_tokens": 4096})),
        ),
        (
            "thinking_with_forced_tool",
            with(thinking(), "/tool_choice", json!({"type": "any"})),
        ),
        (
            "thinking_with_sampling",
            with(thinking(), "/temperature", json!(0.5)),
        ),
        (
            "thinking_not_adaptive",
            newest(with(plain(), "/thinking", json!({"type": "disabled"}))),
        ),
        (
            "thinking_not_adaptive",
            newest(with(
                plain(),
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 1024}),
            )),
        ),
        (
            "forced_tool_not_taken",
            newest(with(round_trip(), "/tool_choice", json!({"type": "any"}))),
        ),
        (
            "sampling_not_taken",
            newest(with(plain(), "/temperature", json!(0.5))),
        ),
    ]
}

/// As it is asked of a model from Claude 5.5 on.
fn newest(body: serde_json::Value) -> serde_json::Value {
    with(body, "/model", json!("claude-opus-5-5"))
}
