//! Bodies that the Responses API takes; those that it refuses stand in a file of their own.

mod refused;

use serde_json::{Value, json};

use super::super::judge::{accepts, rejects, survives, with, without};
use super::{RULES, check};

fn chat(input: Value) -> Value {
    json!({"model": "gpt-5", "store": false, "instructions": "Be brief.", "input": input})
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn assistant(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn search(id: &str) -> Value {
    json!({"type": "web_search_call", "id": id, "status": "completed",
        "action": {"type": "search", "query": "rust"}})
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Hm."}]})
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "name": name, "description": "Reads.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}})
}

fn plain() -> Value {
    chat(json!([user("Hello")]))
}

fn tooled(input: Value) -> Value {
    with(chat(input), "/tools", json!([tool("read")]))
}

fn round_trip() -> Value {
    tooled(json!([
        user("Read a and b"),
        call("call_1"),
        call("call_2"),
        output("call_2"),
        output("call_1"),
    ]))
}

fn thinking() -> Value {
    let body = tooled(json!([
        user("Read a and b"),
        reasoning("rs_1"),
        reasoning("rs_2"),
        with(call("call_1"), "/id", json!("fc_1")),
        output("call_1"),
        reasoning("rs_3"),
        assistant("Done."),
        user("Thanks"),
    ]));
    with(body, "/include", json!(["reasoning.encrypted_content"]))
}

/// Functions under a common name, as Codex sends them.
fn namespace() -> Value {
    json!({"type": "namespace", "name": "agents", "description": "Subagents.",
        "tools": [tool("close"), {"type": "custom", "name": "exec", "description": "Runs."}]})
}

fn more_tools() -> Value {
    let tools = json!([namespace(), {"type": "web_search"}]);
    json!({"type": "additional_tools", "id": "at_1", "role": "developer", "tools": tools})
}

/// As Codex begins a conversation.
fn codex() -> Value {
    let body = chat(json!([more_tools(), user("Hello")]));
    let body = with(body, "/client_metadata", json!({"session_id": "s"}));
    with(body, "/tools", json!([tool("read"), namespace()]))
}

fn images() -> Value {
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,aGk="});
    let body = with(round_trip(), "/input/0/content/-", image.clone());
    with(
        body,
        "/input/3/output",
        json!([{"type": "input_text", "text": "a picture"}, image]),
    )
}

/// Its tools are among the items.
fn called() -> Value {
    tooled(json!([
        more_tools(),
        user("Hello"),
        call("call_1"),
        output("call_1")
    ]))
}

fn good() -> Vec<(&'static str, Value)> {
    let hosted = with(round_trip(), "/tools/-", json!({"type": "web_search"}));
    vec![
        ("plain text", plain()),
        (
            "preferences",
            with(
                with(plain(), "/text", json!({"verbosity": "low"})),
                "/service_tier",
                json!("priority"),
            ),
        ),
        (
            "short form",
            chat(json!([
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi"},
                {"role": "user", "content": "And?"},
            ])),
        ),
        ("round trip with parallel calls", round_trip()),
        ("reasoning round trip", thinking()),
        ("images", images()),
        ("hosted tool", hosted),
        ("namespaces and tools among the items", codex()),
        ("calls of added tools", without(called(), "/tools")),
        (
            "a search and what was found",
            chat(json!([
                user("Hello"),
                search("ws_1"),
                assistant("So."),
                user("And?")
            ])),
        ),
        (
            "two users in a row",
            tooled(json!([
                user("One"),
                user("Two"),
                assistant("I will."),
                call("call_1"),
                output("call_1"),
                call("call_2"),
                output("call_2"),
                user("Three"),
            ])),
        ),
        (
            "silent tool",
            with(round_trip(), "/input/3/output", json!("")),
        ),
        (
            "forced tool",
            with(
                round_trip(),
                "/tool_choice",
                json!({"type": "function", "name": "read"}),
            ),
        ),
        (
            "auto without tools",
            with(plain(), "/tool_choice", json!("auto")),
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
