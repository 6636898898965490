//! Anthropic Messages.

use super::*;

const WIRE: Wire = Wire::AnthropicMessages;

#[test]
fn golden() {
    let expected = json!({
        "model": "some-model",
        "max_tokens": 1000,
        "stream": true,
        "system": [{
            "type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"},
        }],
        "tools": [{
            "name": "shell", "description": "The tool shell.", "input_schema": parameters(),
        }],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {
                    "type": "base64", "media_type": "image/png", "data": "aGk=",
                }},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "shell",
                 "input": {"command": "do call_1"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1",
                 "content": [{"type": "text", "text": "two files"}]},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "<notice>\nrestarted\n</notice>"},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    });
    assert_eq!(body(WIRE, conversation(WIRE)), expected);
}

#[test]
fn without_a_system_prompt_or_tools_neither_is_sent() {
    let mut request = request(WIRE, conversation(WIRE));
    request.context.system = " \n".to_owned();
    request.context.tools.clear();
    let body = encode(&request);
    assert_eq!(body.get("system"), None);
    assert_eq!(body.get("tools"), None);
    assert_eq!(body.get("tool_choice"), None);
}

#[test]
fn tools_that_may_not_be_called_are_listed_and_forbidden() {
    let mut request = request(WIRE, conversation(WIRE));
    request.may_call = false;
    assert_eq!(encode(&request)["tool_choice"], json!({"type": "none"}));
}

#[test]
fn a_failed_result_is_marked_unless_it_holds_an_image() {
    let result = |blocks| failure(WIRE, blocks)["messages"][2]["content"][0].clone();
    assert_eq!(result(vec![Block::text("exit 1")])["is_error"], true);
    let with_image = result(vec![Block::text("exit 1"), image()]);
    assert_eq!(with_image.get("is_error"), None);
}

#[test]
fn malformed_arguments_are_sent_back_inside_an_object() {
    let messages = vec![Message::user(vec![Block::text("go")]), malformed()];
    let input = &body(WIRE, messages)["messages"][1]["content"][0]["input"];
    assert_eq!(*input, json!({"malformed_arguments": "{oops"}));
}

fn thinking_request(messages: Vec<Message>) -> Request {
    let mut request = request(WIRE, messages);
    request.context.max_output_tokens = 8_000;
    request.context.thinking_tokens = Some(2_000);
    request.context.temperature = Some(0.5);
    request
}

#[test]
fn thinking_is_on_without_a_temperature_and_off_with_one() {
    let on = encode(&thinking_request(conversation(WIRE)));
    assert_eq!(
        on["thinking"],
        json!({"type": "enabled", "budget_tokens": 2_000})
    );
    assert_eq!(on.get("temperature"), None);
    let mut request = thinking_request(conversation(WIRE));
    request.context.thinking_tokens = None;
    let off = encode(&request);
    assert_eq!(off.get("thinking"), None);
    assert_eq!(off["temperature"], 0.5);
}

#[test]
fn thinking_that_does_not_fit_into_the_output_is_off() {
    let mut request = thinking_request(conversation(WIRE));
    request.context.max_output_tokens = 2_000;
    assert_eq!(encode(&request).get("thinking"), None);
}

/// In a tool loop that began without it, thinking cannot be turned on, whatever follows the results: a notice, or a
/// prompt that steers.
#[test]
fn thinking_stays_off_in_a_tool_loop_that_began_without_it() {
    let mut messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![call("call_1")]),
        Message::user(vec![result("call_1", "out")]),
    ];
    let thinks = |messages: &[Message]| {
        let body = encode(&thinking_request(messages.to_vec()));
        body.get("thinking").is_some()
    };
    assert!(thinks(&messages[..1]));
    assert!(!thinks(&messages));
    messages.push(Message::user(vec![Block::text("not that file")]));
    assert!(!thinks(&messages), "steered");
    messages.push(Message::assistant(vec![Block::text("done")]));
    messages.push(Message::user(vec![Block::text("next")]));
    assert!(thinks(&messages), "the loop is over");
}

#[test]
fn a_loop_that_began_with_redacted_thinking_began_with_thinking() {
    let redacted = Block::Native {
        wire: WIRE,
        item: json!({"type": "redacted_thinking", "data": "x"}),
    };
    let messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![redacted, call("call_1")]),
        Message::user(vec![result("call_1", "out")]),
    ];
    let body = encode(&thinking_request(messages));
    assert!(body.get("thinking").is_some());
    let first = &body["messages"][1]["content"][0];
    assert_eq!(*first, json!({"type": "redacted_thinking", "data": "x"}));
}

/// A model that accepts an effort accepts neither a budget nor a temperature.
#[test]
fn an_effort_is_sent_in_the_place_of_a_budget() {
    let mut context = crate::fixture::context(WIRE);
    context.effort = Some(crate::event::Effort::High);
    context.temperature = Some(0.5);
    let mut journal = crate::fixture::Journal::new();
    journal.prompt(1, "hi");
    let request = crate::request::answer(&journal.window(), &context).unwrap();
    let body = crate::wire::encode(&request);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(body["output_config"], json!({"effort": "high"}));
    assert!(body.get("temperature").is_none());
}
