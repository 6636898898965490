//! Bodies that the Messages API takes; those that it refuses stand in a file of their own.

mod refused;
mod turns;

use serde_json::{Value, json};

use super::super::judge::{accepts, rejects, survives, with};
use super::{RULES, check};

fn plain() -> Value {
    json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello"}],
    })
}

fn chat(messages: Value) -> Value {
    with(plain(), "/messages", messages)
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Reads.",
        "input_schema": {"type": "object", "properties": {}}})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a"}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn tooled(messages: Value) -> Value {
    with(chat(messages), "/tools", json!([tool("read")]))
}

/// An answer that the model found with a search on Anthropic's side.
fn searched() -> Value {
    let found = json!({"type": "web_search_result", "url": "https://a.example", "title": "A",
        "encrypted_content": "ZQ==", "page_age": null});
    let citation = json!({"type": "web_search_result_location", "url": "https://a.example",
        "title": "A", "encrypted_index": "aQ==", "cited_text": "so"});
    let answer = assistant(json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
            "input": {"query": "rust"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]},
        {"type": "text", "text": "So it is.", "citations": [citation]},
    ]));
    let body = chat(json!([user(json!("Search")), answer, user(json!("And?"))]));
    let tool = json!({"type": "web_search_20250305", "name": "web_search"});
    with(body, "/tools", json!([tool]))
}

fn round_trip() -> Value {
    tooled(json!([
        user(json!("Read a and b")),
        assistant(json!([text("I will."), call("toolu_1"), call("toolu_2")])),
        user(json!([
            result("toolu_2"),
            result("toolu_1"),
            text("Go on, please.")
        ])),
    ]))
}

fn thinking() -> Value {
    let body = tooled(json!([
        user(json!("Read a and b")),
        assistant(json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            call("toolu_1"),
        ])),
        user(json!([result("toolu_1")])),
        assistant(json!([call("toolu_2")])),
        user(json!([result("toolu_2")])),
    ]));
    let config = json!({"type": "enabled", "budget_tokens": 1024});
    with(body, "/thinking", config)
}

fn images() -> Value {
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    tooled(json!([
        user(json!([image, text("What is this?")])),
        assistant(json!([call("toolu_1")])),
        user(
            json!([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": false,
            "content": [text("a picture"), image]}])
        ),
        user(
            json!([{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}}])
        ),
    ]))
}

fn cached() -> Value {
    let mark = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let body = with(round_trip(), "/tools/0/cache_control", long.clone());
    let system = json!([{"type": "text", "text": "Be brief.", "cache_control": long}]);
    let body = with(body, "/system", system);
    let body = with(body, "/messages/2/content/0/cache_control", mark.clone());
    // Only data of the tool, not a mark.
    let body = with(body, "/messages/1/content/1/input/cache_control", json!(1));
    with(body, "/messages/2/content/2/cache_control", mark)
}

fn good() -> Vec<(&'static str, Value)> {
    let server = searched();
    vec![
        ("plain text", plain()),
        ("tool round trip with parallel calls", round_trip()),
        ("thinking round trip", thinking()),
        ("images", images()),
        ("cache marks", cached()),
        ("server tools", server),
        (
            "neighbouring messages of one role",
            tooled(json!([
                user(json!("One")),
                user(json!("Two")),
                assistant(json!("Three")),
                assistant(json!([call("toolu_1")])),
                assistant(json!([call("toolu_2")])),
                user(json!([result("toolu_1"), {"type": "tool_result", "tool_use_id": "toolu_2"}])),
                user(json!("Four")),
            ])),
        ),
        (
            "a forced tool",
            with(
                round_trip(),
                "/tool_choice",
                json!({"type": "tool", "name": "read"}),
            ),
        ),
        (
            "adaptive thinking needs no thinking in front",
            with(round_trip(), "/thinking", json!({"type": "adaptive"})),
        ),
    ]
}

#[test]
fn accepted_bodies() {
    accepts(check, &good());
}

#[test]
fn every_rule_rejects() {
    rejects(check, RULES, &[refused::all(), turns::all()].concat());
}

#[test]
fn junk_anywhere_is_judged_without_panic() {
    survives(check, RULES, &good());
}
