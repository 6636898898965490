//! Gemini `generateContent`.

use super::*;
use crate::fixture::signature;

const WIRE: Wire = Wire::Gemini;

#[test]
fn golden() {
    let expected = json!({
        "generationConfig": {"maxOutputTokens": 1000},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{
            "name": "shell", "description": "The tool shell.",
            "parametersJsonSchema": parameters(),
        }]}],
        "contents": [
            {"role": "user", "parts": [
                {"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            ]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true, "thoughtSignature": "c2lnbmVk"},
                {"text": "I look."},
                {"functionCall": {"id": "call_1", "name": "shell",
                                  "args": {"command": "do call_1"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "call_1", "name": "shell",
                                      "response": {"output": "two files"}}},
            ]},
            {"role": "user", "parts": [{"text": "<notice>\nrestarted\n</notice>"}]},
            {"role": "user", "parts": [{"text": "and?"}]},
        ],
    });
    assert_eq!(body(WIRE, conversation(WIRE)), expected);
}

#[test]
fn without_a_system_prompt_or_tools_neither_is_sent() {
    let mut request = request(WIRE, conversation(WIRE));
    request.context.system.clear();
    request.context.tools.clear();
    let body = encode(&request);
    assert_eq!(body.get("systemInstruction"), None);
    assert_eq!(body.get("tools"), None);
}

#[test]
fn tools_that_may_not_be_called_are_listed_and_forbidden() {
    let mut request = request(WIRE, conversation(WIRE));
    request.may_call = false;
    let config = &encode(&request)["toolConfig"];
    assert_eq!(*config, json!({"functionCallingConfig": {"mode": "NONE"}}));
}

#[test]
fn temperature_and_thinking_stand_in_the_generation_config() {
    let mut request = request(WIRE, conversation(WIRE));
    request.context.temperature = Some(0.5);
    request.context.thinking_tokens = Some(512);
    let expected = json!({
        "maxOutputTokens": 1000,
        "temperature": 0.5,
        "thinkingConfig": {"thinkingBudget": 512, "includeThoughts": true},
    });
    assert_eq!(encode(&request)["generationConfig"], expected);
}

#[test]
fn a_failed_result_says_so_and_its_image_follows() {
    let body = failure(WIRE, vec![Block::text("exit 1"), image()]);
    let expected = json!([
        {"functionResponse": {"id": "call_1", "name": "shell",
                              "response": {"error": "exit 1"}}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]);
    assert_eq!(body["contents"][2]["parts"], expected);
}

#[test]
fn a_call_keeps_its_own_signature() {
    let mut block = call("call_1");
    if let Block::ToolCall(call) = &mut block {
        call.signature = Some(signature(WIRE));
    }
    let messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![block]),
    ];
    let part = &body(WIRE, messages)["contents"][1]["parts"][0];
    assert_eq!(part["thoughtSignature"], "c2lnbmVk");
}

#[test]
fn malformed_arguments_are_sent_back_inside_an_object() {
    let messages = vec![Message::user(vec![Block::text("go")]), malformed()];
    let body = body(WIRE, messages);
    let args = &body["contents"][1]["parts"][0]["functionCall"]["args"];
    assert_eq!(*args, json!({"malformed_arguments": "{oops"}));
}
