//! For every rule at least one body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{call, calls, images, plain, result, round_trip, tool, tooled, user};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    [bad_shapes(), bad_tools(), bad_turns()].concat()
}

fn bad_shapes() -> Vec<(&'static str, Value)> {
    let content = "/messages/1/content";
    let speak =
        |message: Value| json!({"model": "m", "messages": [user("Hello"), message, user("And?")]});
    vec![
        (
            "bad_part",
            with(plain(), content, json!([{"type": "file"}])),
        ),
        (
            "bad_part",
            with(plain(), content, json!([{"type": "text"}])),
        ),
        ("body_not_object", json!("hello")),
        (
            "unknown_field",
            with(plain(), "/max_output_tokens", json!(5)),
        ),
        (
            "unknown_field",
            with(plain(), "/messages/1/id", json!("m1")),
        ),
        ("missing_model", with(plain(), "/model", json!(""))),
        ("bad_messages", without(plain(), "/messages")),
        ("empty_messages", with(plain(), "/messages", json!([]))),
        (
            "bad_role",
            with(plain(), "/messages/0/role", json!("model")),
        ),
        (
            "bad_name",
            with(plain(), "/messages/1/name", json!("the user")),
        ),
        ("bad_sampling", with(plain(), "/temperature", json!(2.5))),
        ("bad_verbosity", with(plain(), "/verbosity", json!("brief"))),
        (
            "unsupported_verbosity",
            with(plain(), "/verbosity", json!("high")),
        ),
        (
            "bad_service_tier",
            with(plain(), "/service_tier", json!(true)),
        ),
        (
            "unsupported_service_tier",
            with(
                with(plain(), "/service_tier", json!("priority")),
                "/model",
                json!("some-model"),
            ),
        ),
        (
            "bad_max_tokens",
            with(plain(), "/max_completion_tokens", json!(0)),
        ),
        (
            "two_token_limits",
            with(
                with(plain(), "/max_tokens", json!(9)),
                "/max_completion_tokens",
                json!(9),
            ),
        ),
        (
            "stream_options_without_stream",
            with(plain(), "/stream_options", json!({"include_usage": true})),
        ),
        ("bad_content", with(plain(), content, json!(null))),
        (
            "bad_content",
            with(round_trip(), "/messages/2/content", json!({"a": 1})),
        ),
        ("empty_content", with(plain(), content, json!([]))),
        ("blank_text", with(plain(), content, json!(" "))),
        (
            "blank_text",
            with(plain(), content, json!([{"type": "text", "text": ""}])),
        ),
        (
            "blank_text",
            with(round_trip(), "/messages/1/content", json!("")),
        ),
        (
            "bad_part",
            with(
                plain(),
                content,
                json!([{"type": "input_text", "text": "Hello"}]),
            ),
        ),
        ("bad_part", with(plain(), content, json!(["Hello"]))),
        (
            "bad_image",
            with(
                images(),
                "/messages/1/content/1/image_url",
                json!("https://example.org/a.png"),
            ),
        ),
        (
            "image_outside_user",
            with(
                round_trip(),
                "/messages/2/content",
                json!([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]),
            ),
        ),
        (
            "empty_assistant",
            speak(json!({"role": "assistant", "content": null})),
        ),
        (
            "empty_tool_calls",
            speak(json!({"role": "assistant", "content": "Hi", "tool_calls": []})),
        ),
        (
            "bad_tool_calls",
            speak(json!({"role": "assistant", "content": "Hi", "tool_calls": null})),
        ),
        (
            "bad_tool_calls",
            with(
                round_trip(),
                "/messages/1/tool_calls/0/type",
                json!("tool_use"),
            ),
        ),
        (
            "tool_calls_outside_assistant",
            with(
                round_trip(),
                "/messages/0/tool_calls",
                json!([call("call_9")]),
            ),
        ),
        (
            "bad_arguments",
            with(
                round_trip(),
                "/messages/1/tool_calls/0/function/arguments",
                json!({}),
            ),
        ),
    ]
}

fn bad_tools() -> Vec<(&'static str, Value)> {
    let parameters = "/tools/0/function/parameters";
    let many: Vec<_> = (0..129).map(|index| tool(&format!("t{index}"))).collect();
    vec![
        ("bad_tools", with(plain(), "/tools", json!({}))),
        (
            "bad_tools",
            with(
                plain(),
                "/tools",
                json!([{"type": "function", "name": "read"}]),
            ),
        ),
        ("empty_tools", with(plain(), "/tools", json!([]))),
        ("too_many_tools", with(plain(), "/tools", json!(many))),
        (
            "duplicate_tool",
            with(round_trip(), "/tools/-", tool("read")),
        ),
        ("tools_missing", without(round_trip(), "/tools")),
        (
            "bad_tool_name",
            with(round_trip(), "/tools/0/function/name", json!("fs.read")),
        ),
        (
            "bad_tool_name",
            with(
                round_trip(),
                "/messages/1/tool_calls/1/function/name",
                json!(""),
            ),
        ),
        (
            "bad_parameters",
            with(round_trip(), parameters, json!("{}")),
        ),
        (
            "schema_not_object",
            with(round_trip(), parameters, json!({})),
        ),
        (
            "schema_without_properties",
            with(round_trip(), parameters, json!({"type": "object"})),
        ),
        (
            "schema_root_choice",
            with(
                round_trip(),
                "/tools/0/function/parameters/anyOf",
                json!([]),
            ),
        ),
        (
            "schema_array_without_items",
            with(
                round_trip(),
                "/tools/0/function/parameters/properties/path",
                json!({"type": "array"}),
            ),
        ),
        (
            "schema_not_strict",
            with(round_trip(), "/tools/0/function/strict", json!(true)),
        ),
        (
            "bad_tool_choice",
            with(round_trip(), "/tool_choice", json!("any")),
        ),
        (
            "bad_tool_choice",
            with(
                round_trip(),
                "/tool_choice",
                json!({"type": "function", "function": {"name": "write"}}),
            ),
        ),
        (
            "tool_choice_without_tools",
            with(plain(), "/tool_choice", json!("none")),
        ),
        (
            "parallel_without_tools",
            with(plain(), "/parallel_tool_calls", json!(true)),
        ),
    ]
}

fn bad_turns() -> Vec<(&'static str, Value)> {
    let long = "x".repeat(65);
    vec![
        (
            "first_not_user",
            with(
                plain(),
                "/messages",
                json!([
                    {"role": "system", "content": "Be brief."},
                    {"role": "assistant", "content": "Hi"},
                    user("Hello"),
                ]),
            ),
        ),
        (
            "last_not_user_or_tool",
            with(
                plain(),
                "/messages/-",
                json!({"role": "assistant", "content": "Hi"}),
            ),
        ),
        (
            "last_not_user_or_tool",
            with(
                plain(),
                "/messages/-",
                json!({"role": "system", "content": "Hi"}),
            ),
        ),
        (
            "bad_tool_call_id",
            tooled(json!([user("Hello"), calls(&[&long]), result(&long)])),
        ),
        (
            "bad_tool_call_id",
            tooled(json!([user("Hello"), calls(&[""]), result("")])),
        ),
        (
            "duplicate_tool_call_id",
            tooled(json!([
                user("Hello"),
                calls(&["call_1"]),
                result("call_1"),
                calls(&["call_1"]),
                result("call_1"),
            ])),
        ),
        ("unanswered_tool_call", without(round_trip(), "/messages/3")),
        (
            "unanswered_tool_call",
            tooled(json!([user("Hello"), calls(&["call_1"]), user("Well?")])),
        ),
        (
            "late_tool_message",
            tooled(json!([
                user("Hello"),
                calls(&["call_1"]),
                user("Well?"),
                result("call_1"),
            ])),
        ),
        (
            "duplicate_tool_message",
            with(round_trip(), "/messages/-", result("call_1")),
        ),
        (
            "orphan_tool_message",
            with(round_trip(), "/messages/-", result("call_3")),
        ),
        (
            "orphan_tool_message",
            tooled(json!([
                user("Hello"),
                calls(&["call_1"]),
                result("call_1"),
                {"role": "assistant", "content": "Done."},
                result("call_1"),
            ])),
        ),
    ]
}
