//! For every rule about single parts and tools a body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{
    assistant, cached, call, chat, images, plain, result, round_trip, searched, text, thinking,
    tool, tooled, user,
};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    [bad_shapes(), bad_files(), bad_tools(), bad_searches()].concat()
}

fn bad_files() -> Vec<(&'static str, Value)> {
    let image = |bytes: usize| {
        json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": "A".repeat(bytes)}})
    };
    let of = |count, bytes| chat(json!([user(json!(vec![image(bytes); count]))]));
    let document = |media: &str, data: &str| {
        let source = json!({"type": "base64", "media_type": media, "data": data});
        chat(json!([user(
            json!([{"type": "document", "source": source}])
        )]))
    };
    vec![
        ("too_many_files", of(101, 4)),
        ("image_too_large", of(1, 5_242_884)),
        ("files_too_large", of(8, 4_000_004)),
        ("bad_document_source", document("application/pdf", "aGk=")),
        ("bad_document_source", document("image/png", "JVBERi0x")),
    ]
}

fn bad_shapes() -> Vec<(&'static str, Value)> {
    let first = "/messages/0/content";
    vec![
        ("blank_system", with(plain(), "/system", json!([]))),
        ("body_not_object", json!([])),
        (
            "unknown_field",
            with(plain(), "/max_output_tokens", json!(1)),
        ),
        (
            "unknown_field",
            with(plain(), "/messages/0/id", json!("m1")),
        ),
        (
            "unknown_field",
            with(
                thinking(),
                "/messages/1/content/0/cache_control",
                json!({"type": "ephemeral"}),
            ),
        ),
        ("missing_model", without(plain(), "/model")),
        ("bad_max_tokens", with(plain(), "/max_tokens", json!(0))),
        ("bad_max_tokens", without(plain(), "/max_tokens")),
        ("bad_messages", without(plain(), "/messages")),
        ("empty_messages", chat(json!([]))),
        (
            "bad_role",
            chat(json!([{"role": "system", "content": "Be brief."}, user(json!("Hello"))])),
        ),
        (
            "bad_system",
            with(plain(), "/system", json!({"text": "Be brief."})),
        ),
        ("bad_system", with(plain(), "/system", json!(["Be brief."]))),
        ("blank_system", with(plain(), "/system", json!(" "))),
        ("blank_system", with(plain(), "/system", json!([text("")]))),
        ("bad_sampling", with(plain(), "/temperature", json!(1.2))),
        (
            "bad_service_tier",
            with(plain(), "/service_tier", json!("priority")),
        ),
        ("unknown_field", with(plain(), "/verbosity", json!("low"))),
        ("bad_sampling", with(plain(), "/top_k", json!(-1))),
        (
            "bad_stop_sequences",
            with(plain(), "/stop_sequences", json!(["\n"])),
        ),
        ("bad_content", without(plain(), first)),
        ("empty_content", with(plain(), first, json!([]))),
        ("blank_text", with(plain(), first, json!(""))),
        (
            "blank_text",
            with(plain(), first, json!([text("Hi"), text(" \n\t")])),
        ),
        (
            "blank_text",
            with(images(), "/messages/2/content/0/content/0/text", json!("")),
        ),
        ("bad_block", with(plain(), first, json!(["Hello"]))),
        ("bad_block", with(plain(), first, json!([{"type": "text"}]))),
        (
            "unknown_block_type",
            with(
                plain(),
                first,
                json!([{"type": "input_text", "text": "Hello"}]),
            ),
        ),
        (
            "block_in_wrong_role",
            chat(json!([
                user(json!("Hello")),
                assistant(json!([{"type": "image", "source": {"type": "file", "file_id": "f"}}])),
                user(json!("And?")),
            ])),
        ),
        (
            "bad_image_source",
            with(images(), "/messages/0/content/0/source", json!("aGk=")),
        ),
        (
            "bad_image_media_type",
            with(
                images(),
                "/messages/0/content/0/source/media_type",
                json!("image/bmp"),
            ),
        ),
        (
            "bad_image_data",
            with(images(), "/messages/0/content/0/source/data", json!("")),
        ),
        (
            "bad_document_source",
            without(images(), "/messages/3/content/1/source"),
        ),
        (
            "bad_is_error",
            with(images(), "/messages/2/content/0/is_error", json!("no")),
        ),
        (
            "error_result_not_text",
            with(images(), "/messages/2/content/0/is_error", json!(true)),
        ),
        (
            "bad_tool_result_content",
            with(
                round_trip(),
                "/messages/2/content/0/content",
                json!({"a": 1}),
            ),
        ),
        (
            "bad_tool_result_content",
            with(
                round_trip(),
                "/messages/2/content/0/content",
                json!([call("toolu_9")]),
            ),
        ),
    ]
}

fn bad_tools() -> Vec<(&'static str, Value)> {
    let choice = |choice| with(round_trip(), "/tool_choice", choice);
    vec![
        ("bad_tools", with(plain(), "/tools", json!([{"type": 5}]))),
        (
            "bad_tools",
            with(round_trip(), "/tools/0/description", json!(5)),
        ),
        (
            "bad_tool_name",
            with(plain(), "/tools", json!([{"type": "bash_20250124"}])),
        ),
        (
            "bad_tool_id",
            tooled(json!([
                user(json!("Hello")),
                assistant(json!([call("")])),
                user(json!([result("")])),
            ])),
        ),
        ("tools_missing", without(round_trip(), "/tools")),
        ("tools_missing", with(round_trip(), "/tools", json!([]))),
        ("bad_tools", with(plain(), "/tools", json!({}))),
        ("bad_tools", with(plain(), "/tools", json!(["read"]))),
        (
            "bad_tool_name",
            with(round_trip(), "/tools/0/name", json!("fs.read")),
        ),
        (
            "bad_tool_name",
            with(
                round_trip(),
                "/messages/1/content/1/name",
                json!("a".repeat(65)),
            ),
        ),
        (
            "bad_input_schema",
            without(round_trip(), "/tools/0/input_schema"),
        ),
        (
            "schema_not_object",
            with(
                round_trip(),
                "/tools/0/input_schema",
                json!({"properties": {}}),
            ),
        ),
        (
            "schema_root_choice",
            with(round_trip(), "/tools/0/input_schema/oneOf", json!([])),
        ),
        (
            "duplicate_tool",
            with(round_trip(), "/tools/-", tool("read")),
        ),
        ("bad_tool_choice", choice(json!("auto"))),
        (
            "bad_tool_choice",
            choice(json!({"type": "tool", "name": "write"})),
        ),
        (
            "tool_choice_without_tools",
            with(plain(), "/tool_choice", json!({"type": "auto"})),
        ),
        (
            "bad_tool_input",
            with(round_trip(), "/messages/1/content/1/input", json!("{}")),
        ),
        (
            "bad_tool_id",
            tooled(json!([
                user(json!("Hello")),
                assistant(json!([call("call 1")])),
                user(json!([result("call 1")])),
            ])),
        ),
        (
            "bad_cache_control",
            with(cached(), "/tools/0/cache_control/type", json!("forever")),
        ),
        (
            "bad_cache_control",
            with(cached(), "/tools/0/cache_control/ttl", json!("2h")),
        ),
        (
            "too_many_cache_controls",
            with(cached(), "/cache_control", json!({"type": "ephemeral"})),
        ),
        (
            "cache_ttl_order",
            with(cached(), "/tools/0/cache_control/ttl", json!("5m")),
        ),
    ]
}

fn bad_searches() -> Vec<(&'static str, Value)> {
    let answer = "/messages/1/content";
    vec![
        (
            "bad_server_tool",
            with(searched(), "/tools/0/type", json!("web_search_1")),
        ),
        (
            "bad_server_tool",
            with(searched(), "/tools/0/name", json!("search")),
        ),
        (
            "bad_server_tool_use",
            with(searched(), &format!("{answer}/0/input"), json!("rust")),
        ),
        (
            "unanswered_server_tool_use",
            without(searched(), &format!("{answer}/1")),
        ),
        (
            "orphan_server_result",
            without(searched(), &format!("{answer}/0")),
        ),
        (
            "bad_search_result",
            without(
                searched(),
                &format!("{answer}/1/content/0/encrypted_content"),
            ),
        ),
        (
            "bad_citation",
            without(
                searched(),
                &format!("{answer}/2/citations/0/encrypted_index"),
            ),
        ),
    ]
}
