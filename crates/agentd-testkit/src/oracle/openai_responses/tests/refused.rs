//! For every rule at least one body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{
    assistant, call, chat, codex, images, output, plain, reasoning, round_trip, search, thinking,
    tool, tooled, user,
};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    [bad_shapes(), bad_tools(), bad_turns(), bad_files()].concat()
}

fn bad_files() -> Vec<(&'static str, Value)> {
    let image = |bytes: usize| {
        let url = format!("data:image/png;base64,{}", "A".repeat(bytes));
        json!({"type": "input_image", "image_url": url})
    };
    let of = |parts: Vec<Value>| with(plain(), "/input/0/content", json!(parts));
    let pdf = "data:application/pdf;base64,JVBERi0x";
    let file = |name: &str, data: &str| {
        of(vec![
            json!({"type": "input_file", "filename": name, "file_data": data}),
        ])
    };
    vec![
        ("too_many_files", of(vec![image(4); 501])),
        ("files_too_large", of(vec![image(25_000_004); 2])),
        ("bad_file", file(" ", pdf)),
        ("bad_file", file("a.pdf", "JVBERi0x")),
    ]
}

fn bad_shapes() -> Vec<(&'static str, Value)> {
    let content = "/input/0/content";
    vec![
        (
            "bad_part",
            with(plain(), "/input/0/content/0/text", json!(5)),
        ),
        (
            "bad_part",
            with(plain(), "/input/0/content/-", json!({"type": "input_file"})),
        ),
        (
            "bad_output",
            with(round_trip(), "/input/3/output", json!([])),
        ),
        ("body_not_object", json!(null)),
        ("unknown_field", with(plain(), "/messages", json!([]))),
        (
            "unknown_field",
            with(round_trip(), "/input/3/name", json!("read")),
        ),
        ("missing_model", without(plain(), "/model")),
        ("store_not_false", without(plain(), "/store")),
        (
            "stateful_field",
            with(plain(), "/previous_response_id", json!("resp_1")),
        ),
        (
            "blank_instructions",
            with(plain(), "/instructions", json!("")),
        ),
        ("bad_sampling", with(plain(), "/top_p", json!(1.1))),
        ("bad_text", with(plain(), "/text", json!("low"))),
        (
            "bad_verbosity",
            with(plain(), "/text", json!({"verbosity": "brief"})),
        ),
        (
            "unsupported_verbosity",
            with(
                with(plain(), "/text", json!({"verbosity": "low"})),
                "/model",
                json!("gpt-4.1"),
            ),
        ),
        ("unknown_field", with(plain(), "/verbosity", json!("low"))),
        (
            "bad_service_tier",
            with(plain(), "/service_tier", json!("quick")),
        ),
        (
            "unsupported_service_tier",
            with(
                with(plain(), "/service_tier", json!("priority")),
                "/model",
                json!("gpt-5-nano"),
            ),
        ),
        (
            "bad_max_tokens",
            with(plain(), "/max_output_tokens", json!(15)),
        ),
        (
            "stream_options_without_stream",
            with(plain(), "/stream_options", json!({})),
        ),
        ("bad_input", with(plain(), "/input", json!("Hello"))),
        ("empty_input", with(plain(), "/input", json!([]))),
        (
            "unknown_item_type",
            with(
                plain(),
                "/input/-",
                json!({"type": "item_reference", "id": "rs_1"}),
            ),
        ),
        (
            "unknown_item_type",
            with(plain(), "/input/-", json!("Hello")),
        ),
        ("bad_role", with(plain(), "/input/0/role", json!("tool"))),
        ("bad_content", without(plain(), content)),
        ("empty_content", with(plain(), content, json!([]))),
        ("blank_text", with(plain(), content, json!("\n"))),
        (
            "blank_text",
            with(plain(), "/input/0/content/0/text", json!(" ")),
        ),
        (
            "bad_part",
            with(plain(), "/input/0/content/0/type", json!("text")),
        ),
        (
            "part_in_wrong_role",
            with(plain(), "/input/0/content/0/type", json!("output_text")),
        ),
        (
            "part_in_wrong_role",
            with(thinking(), "/input/6/content/0/type", json!("input_text")),
        ),
        (
            "bad_image",
            with(
                images(),
                "/input/0/content/1/image_url",
                json!({"url": "https://example.org/a"}),
            ),
        ),
        (
            "bad_status",
            with(thinking(), "/input/6/status", json!("done")),
        ),
        (
            "bad_item_id",
            with(round_trip(), "/input/1/id", json!("call_1")),
        ),
        ("bad_item_id", with(thinking(), "/input/6/id", json!(""))),
        ("bad_item_id", without(thinking(), "/input/1/id")),
        (
            "duplicate_item_id",
            with(thinking(), "/input/2/id", json!("rs_1")),
        ),
        (
            "bad_arguments",
            with(round_trip(), "/input/1/arguments", json!({})),
        ),
        (
            "bad_output",
            with(round_trip(), "/input/3/output", json!({"a": 1})),
        ),
        ("bad_output", without(round_trip(), "/input/3/output")),
        (
            "reasoning_without_encrypted_content",
            with(thinking(), "/input/1/encrypted_content", json!(null)),
        ),
        (
            "reasoning_without_summary",
            without(thinking(), "/input/1/summary"),
        ),
        (
            "reasoning_with_content",
            with(
                thinking(),
                "/input/1/content",
                json!([{"type": "reasoning_text", "text": "Hm."}]),
            ),
        ),
    ]
}

fn bad_tools() -> Vec<(&'static str, Value)> {
    let parameters = "/tools/0/parameters";
    let many: Vec<_> = (0..129).map(|index| tool(&format!("t{index}"))).collect();
    vec![
        (
            "bad_tools",
            with(round_trip(), "/tools/0/description", json!(5)),
        ),
        (
            "bad_tools",
            with(round_trip(), "/tools/0/strict", json!("yes")),
        ),
        (
            "schema_not_strict",
            with(
                with(round_trip(), "/tools/0/strict", json!(true)),
                parameters,
                json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            ),
        ),
        (
            "schema_not_strict",
            with(
                with(round_trip(), "/tools/0/strict", json!(true)),
                parameters,
                json!({"type": "object", "properties": {}}),
            ),
        ),
        ("bad_tools", with(plain(), "/tools", json!("read"))),
        (
            "bad_tools",
            with(plain(), "/tools", json!([{"name": "read"}])),
        ),
        (
            "bad_tools",
            with(codex(), "/tools/1/tools/1", json!({"type": "web_search"})),
        ),
        (
            "bad_tool_name",
            with(codex(), "/tools/1/name", json!("a b")),
        ),
        (
            "unknown_field",
            with(codex(), "/tools/1/strict", json!(true)),
        ),
        (
            "duplicate_tool",
            with(codex(), "/tools/1/tools/-", tool("close")),
        ),
        ("bad_role", with(codex(), "/input/0/role", json!("user"))),
        ("bad_tools", with(codex(), "/input/0/tools", json!("read"))),
        ("bad_item_id", with(codex(), "/input/0/id", json!("msg_1"))),
        ("too_many_tools", with(plain(), "/tools", json!(many))),
        (
            "duplicate_tool",
            with(round_trip(), "/tools/-", tool("read")),
        ),
        ("tools_missing", without(round_trip(), "/tools")),
        (
            "bad_tool_name",
            with(
                plain(),
                "/tools",
                json!([{"type": "function", "function": tool("read")}]),
            ),
        ),
        (
            "bad_tool_name",
            with(round_trip(), "/input/1/name", json!("fs/read")),
        ),
        ("bad_parameters", with(round_trip(), parameters, json!([]))),
        (
            "schema_not_object",
            with(round_trip(), parameters, json!({"type": "string"})),
        ),
        (
            "schema_without_properties",
            with(round_trip(), parameters, json!({"type": "object"})),
        ),
        (
            "schema_root_choice",
            with(round_trip(), "/tools/0/parameters/allOf", json!([])),
        ),
        (
            "schema_array_without_items",
            with(
                round_trip(),
                "/tools/0/parameters/properties/path/type",
                json!("array"),
            ),
        ),
        (
            "schema_not_strict",
            with(round_trip(), "/tools/0/strict", json!(true)),
        ),
        (
            "bad_tool_choice",
            with(
                round_trip(),
                "/tool_choice",
                json!({"type": "function", "name": "write"}),
            ),
        ),
        (
            "bad_tool_choice",
            with(round_trip(), "/tool_choice", json!("any")),
        ),
        (
            "tool_choice_without_tools",
            with(plain(), "/tool_choice", json!("required")),
        ),
    ]
}

fn bad_turns() -> Vec<(&'static str, Value)> {
    let long = "x".repeat(65);
    vec![
        (
            "first_not_user",
            chat(json!([assistant("Hi"), user("Hello")])),
        ),
        (
            "trailing_assistant",
            chat(json!([user("Hello"), assistant("Hi")])),
        ),
        (
            "bad_call_id",
            tooled(json!([user("Hello"), call(&long), output(&long)])),
        ),
        (
            "bad_call_id",
            tooled(json!([user("Hello"), call(""), output("")])),
        ),
        (
            "duplicate_call_id",
            tooled(json!([
                user("Hello"),
                call("call_1"),
                call("call_1"),
                output("call_1"),
            ])),
        ),
        ("unanswered_call", without(round_trip(), "/input/4")),
        (
            "unanswered_call",
            tooled(json!([user("Hello"), call("call_1"), user("Well?")])),
        ),
        (
            "late_output",
            tooled(json!([
                user("Hello"),
                call("call_1"),
                user("Well?"),
                output("call_1")
            ])),
        ),
        (
            "late_output",
            tooled(json!([
                user("Hello"),
                call("call_1"),
                call("call_2"),
                output("call_1"),
                call("call_3"),
                output("call_2"),
                output("call_3"),
            ])),
        ),
        (
            "duplicate_output",
            with(round_trip(), "/input/-", output("call_1")),
        ),
        (
            "orphan_output",
            with(round_trip(), "/input/-", output("call_3")),
        ),
        (
            "reasoning_without_follower",
            chat(json!([user("Hello"), reasoning("rs_1"), user("And?")])),
        ),
        (
            "bad_search_call",
            with(
                chat(json!([user("Hello"), search("ws_1"), user("And?")])),
                "/input/1/status",
                json!("done"),
            ),
        ),
        (
            "bad_search_call",
            without(
                chat(json!([user("Hello"), search("ws_1"), user("And?")])),
                "/input/1/action",
            ),
        ),
        (
            "reasoning_without_follower",
            tooled(json!([
                user("Hello"),
                call("call_1"),
                reasoning("rs_1"),
                output("call_1"),
            ])),
        ),
    ]
}
