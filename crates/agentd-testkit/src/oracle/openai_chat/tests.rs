//! Bodies that Chat Completions takes; those that it refuses stand in a file of their own.

mod refused;

use serde_json::{Value, json};

use super::super::judge::{accepts, rejects, survives, with, without};
use super::{RULES, check};

fn plain() -> Value {
    json!({
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
    })
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Reads.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}})
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn tooled(messages: Value) -> Value {
    json!({"model": "gpt-4.1", "messages": messages, "tools": [tool("read")]})
}

fn round_trip() -> Value {
    tooled(json!([
        user("Read a and b"),
        calls(&["call_1", "call_2"]),
        result("call_2"),
        result("call_1"),
    ]))
}

fn images() -> Value {
    with(
        plain(),
        "/messages/1/content",
        json!([
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a", "detail": "low"}},
        ]),
    )
}

fn good() -> Vec<(&'static str, Value)> {
    let strict = json!({"type": "object", "properties": {"path": {"type": "string"}},
        "required": ["path"], "additionalProperties": false});
    let strict = with(round_trip(), "/tools/0/function/parameters", strict);
    let stream = with(plain(), "/stream", json!(true));
    vec![
        ("plain text", plain()),
        (
            "medium verbosity and priority",
            with(
                with(plain(), "/verbosity", json!("medium")),
                "/service_tier",
                json!("priority"),
            ),
        ),
        ("round trip with parallel calls", round_trip()),
        ("images", images()),
        (
            "strict tool",
            with(strict, "/tools/0/function/strict", json!(true)),
        ),
        (
            "tool without parameters",
            without(round_trip(), "/tools/0/function/parameters"),
        ),
        (
            "silent tool",
            with(round_trip(), "/messages/2/content", json!("")),
        ),
        (
            "stream",
            with(stream, "/stream_options", json!({"include_usage": true})),
        ),
        (
            "forced tool",
            with(
                round_trip(),
                "/tool_choice",
                json!({"type": "function", "function": {"name": "read"}}),
            ),
        ),
        (
            "two users in a row, text with calls, a second round",
            tooled(json!([
                user("One"),
                user("Two"),
                with(calls(&["call_1"]), "/content", json!("I will.")),
                result("call_1"),
                calls(&["call_2"]),
                result("call_2"),
                {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
                {"role": "developer", "content": "Be kind."},
                user("Thanks"),
            ])),
        ),
    ]
}

#[test]
fn accepted_bodies() {
    accepts(check, &good());
}

#[test]
fn every_rule_rejects() {
    rejects(check, RULES, &refused::all());
}

#[test]
fn junk_anywhere_is_judged_without_panic() {
    survives(check, RULES, &good());
}
