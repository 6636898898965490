//! OpenAI Chat Completions.

use super::*;

const WIRE: Wire = Wire::OpenaiChat;

/// The format has no field for thinking; [`crate::request`] leaves it out.
fn without_thinking() -> Vec<Message> {
    let mut messages = conversation(WIRE);
    messages[1].blocks.remove(0);
    messages
}

#[test]
fn golden() {
    let expected = json!({
        "model": "some-model",
        "max_completion_tokens": 1000,
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {
            "name": "shell", "description": "The tool shell.", "parameters": parameters(),
        }}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": "I look.", "tool_calls": [{
                "id": "call_1", "type": "function",
                "function": {"name": "shell", "arguments": "{\"command\":\"do call_1\"}"},
            }]},
            {"role": "tool", "tool_call_id": "call_1", "content": "two files"},
            {"role": "user", "content": "<notice>\nrestarted\n</notice>"},
            {"role": "user", "content": "and?"},
        ],
    });
    assert_eq!(body(WIRE, without_thinking()), expected);
}

#[test]
fn without_a_system_prompt_or_tools_neither_is_sent() {
    let mut request = request(WIRE, without_thinking());
    request.context.system.clear();
    request.context.tools.clear();
    let body = encode(&request);
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(body.get("tools"), None);
}

#[test]
fn tools_that_may_not_be_called_are_listed_and_forbidden() {
    let mut request = request(WIRE, without_thinking());
    request.may_call = false;
    request.context.temperature = Some(0.5);
    let body = encode(&request);
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["temperature"], 0.5);
}

#[test]
fn an_image_in_a_result_follows_in_the_user_s_role() {
    let body = failure(WIRE, vec![image()]);
    let after = &body["messages"].as_array().unwrap()[3..];
    let expected = [
        json!({"role": "tool", "tool_call_id": "call_1",
               "content": "(see the image that follows)"}),
        json!({"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]}),
    ];
    assert_eq!(after, expected);
}

#[test]
fn several_results_are_several_messages_and_what_else_is_said_follows_them() {
    let messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![call("a"), call("b")]),
        Message::user(vec![
            result("a", "one"),
            outcome(
                "b",
                CallOutcome::Error,
                vec![Block::text("two"), Block::text("three")],
            ),
            Block::text("well?"),
        ]),
    ];
    let body = body(WIRE, messages);
    let after = &body["messages"].as_array().unwrap()[3..];
    let expected = [
        json!({"role": "tool", "tool_call_id": "a", "content": "one"}),
        json!({"role": "tool", "tool_call_id": "b", "content": "two\nthree"}),
        json!({"role": "user", "content": "well?"}),
    ];
    assert_eq!(after, expected);
}

#[test]
fn malformed_arguments_are_sent_back_inside_an_object() {
    let messages = vec![Message::user(vec![Block::text("go")]), malformed()];
    let body = body(WIRE, messages);
    let reply = &body["messages"][2];
    assert_eq!(reply.get("content"), None);
    let arguments = &reply["tool_calls"][0]["function"]["arguments"];
    assert_eq!(*arguments, "{\"malformed_arguments\":\"{oops\"}");
}

#[test]
fn preferences_are_parameters() {
    let mut request = request(WIRE, vec![Message::user(vec![Block::text("go")])]);
    let body = encode(&request);
    assert_eq!(
        (body.get("verbosity"), body.get("service_tier")),
        (None, None)
    );
    request.context.verbosity = Some(crate::spec::Verbosity::Low);
    request.context.fast = true;
    let body = encode(&request);
    assert_eq!(body["verbosity"], "low");
    assert_eq!(body["service_tier"], "priority");
}

#[test]
fn an_effort_is_sent() {
    let mut context = crate::fixture::context(crate::message::Wire::OpenaiChat);
    context.effort = Some(crate::event::Effort::High);
    let mut journal = crate::fixture::Journal::new();
    journal.prompt(1, "hi");
    let request = crate::request::answer(&journal.window(), &context).unwrap();
    let body = crate::wire::encode(&request);
    assert_eq!(body["reasoning_effort"], json!("high"));
}
