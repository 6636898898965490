//! Bodies that generateContent takes; those that it refuses stand in a file of their own.

mod refused;
mod turns;

use serde_json::{Value, json};

use super::super::judge::{accepts, rejects, survives, with, without};
use super::{RULES, check};

fn content(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

fn user(text: &str) -> Value {
    content("user", json!([{"text": text}]))
}

fn call(name: &str, id: Option<&str>) -> Value {
    let mut call = json!({"name": name, "args": {"path": "a"}});
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    json!({"functionCall": call})
}

fn response(name: &str, id: Option<&str>) -> Value {
    let mut response = json!({"name": name, "response": {"output": "done"}});
    if let Some(id) = id {
        response["id"] = json!(id);
    }
    json!({"functionResponse": response})
}

fn plain() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 1000, "temperature": 0.5},
        "contents": [user("Hello")],
    })
}

fn tooled(contents: Value) -> Value {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    json!({"contents": contents, "tools": [{"functionDeclarations": [
        {"name": "read", "description": "Reads.", "parameters": schema},
        {"name": "list", "description": "Lists."},
    ]}]})
}

fn asked(calls: Value, responses: Value) -> Value {
    tooled(json!([
        user("Read"),
        content("model", calls),
        content("user", responses)
    ]))
}

fn round_trip() -> Value {
    asked(
        json!([{"text": "I will."}, call("read", None), call("list", None)]),
        json!([response("list", None), response("read", None), {"text": "Go on."}]),
    )
}

fn with_ids() -> Value {
    asked(
        json!([call("read", Some("c1")), call("read", Some("c2"))]),
        json!([response("read", Some("c2")), response("read", Some("c1"))]),
    )
}

fn thinking() -> Value {
    asked(
        json!([
            {"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"},
            with(call("read", None), "/thoughtSignature", json!("c2ln")),
        ]),
        json!([response("read", None)]),
    )
}

fn images() -> Value {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let body = with(thinking(), "/contents/0/parts/-", image.clone());
    let body = with(
        body,
        "/contents/0/parts/-",
        json!({"fileData": {"fileUri": "files/a"}}),
    );
    with(
        body,
        "/contents/2/parts/0/functionResponse/parts",
        json!([image]),
    )
}

fn good() -> Vec<(&'static str, Value)> {
    let forced =
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}});
    let json_schema = json!({"type": "object", "additionalProperties": false});
    let bare = without(round_trip(), "/tools/0/functionDeclarations/0/parameters");
    vec![
        ("plain text", plain()),
        ("round trip with parallel calls", round_trip()),
        ("parallel calls with ids", with_ids()),
        ("thinking round trip", thinking()),
        ("images", images()),
        ("forced tool", with(round_trip(), "/toolConfig", forced)),
        (
            "JSON schema",
            with(
                bare,
                "/tools/0/functionDeclarations/0/parametersJsonSchema",
                json_schema,
            ),
        ),
        (
            "search",
            with(plain(), "/tools", json!([{"googleSearch": {}}])),
        ),
        (
            "users in a row, a signature alone, two rounds",
            tooled(json!([
                user("One"),
                user("Two"),
                content("model", json!([call("read", None)])),
                content("user", json!([response("read", None)])),
                content("model", json!([call("list", None)])),
                content("user", json!([response("list", None)])),
                user("Three"),
                content(
                    "model",
                    json!([{"text": "Done."}, {"text": "", "thoughtSignature": "c2ln"}])
                ),
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
    rejects(check, RULES, &[refused::all(), turns::all()].concat());
}

#[test]
fn junk_anywhere_is_judged_without_panic() {
    survives(check, RULES, &good());
}
