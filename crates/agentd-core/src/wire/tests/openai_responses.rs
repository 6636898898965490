//! OpenAI Responses.

use super::*;

const WIRE: Wire = Wire::OpenaiResponses;

#[test]
fn golden() {
    let expected = json!({
        "model": "some-model",
        "max_output_tokens": 1000,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [{
            "type": "function", "name": "shell", "description": "The tool shell.",
            "parameters": parameters(), "strict": false,
        }],
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "detail": "auto",
                 "image_url": "data:image/png;base64,aGk="},
            ]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "c2lnbmVk",
             "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "I look.", "annotations": []},
            ]},
            {"type": "function_call", "call_id": "call_1", "name": "shell",
             "arguments": "{\"command\":\"do call_1\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "two files"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "<notice>\nrestarted\n</notice>"},
            ]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "and?"},
            ]},
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
    assert_eq!(body.get("instructions"), None);
    assert_eq!(body.get("tools"), None);
}

#[test]
fn tools_that_may_not_be_called_are_listed_and_forbidden() {
    let mut request = request(WIRE, conversation(WIRE));
    request.may_call = false;
    request.context.temperature = Some(0.5);
    let body = encode(&request);
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["temperature"], 0.5);
}

#[test]
fn an_image_in_a_result_stays_in_it() {
    let body = failure(WIRE, vec![Block::text("exit 1"), image()]);
    let output = &body["input"][2]["output"];
    let expected = json!([
        {"type": "input_text", "text": "exit 1"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
    ]);
    assert_eq!(*output, expected);
}

#[test]
fn thinking_without_words_has_no_summary() {
    let messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![thinking(" ", WIRE), Block::text("so")]),
        Message::user(vec![Block::text("on")]),
    ];
    assert_eq!(body(WIRE, messages)["input"][1]["summary"], json!([]));
}

#[test]
fn a_native_item_goes_back_as_it_came_and_where_it_came() {
    let item = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let native = Block::Native {
        wire: WIRE,
        item: item.clone(),
    };
    let messages = vec![
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![native, Block::text("found")]),
        Message::user(vec![Block::text("on")]),
    ];
    assert_eq!(body(WIRE, messages)["input"][1], item);
}

#[test]
fn malformed_arguments_are_sent_back_inside_an_object() {
    let messages = vec![Message::user(vec![Block::text("go")]), malformed()];
    let arguments = &body(WIRE, messages)["input"][1]["arguments"];
    assert_eq!(*arguments, "{\"malformed_arguments\":\"{oops\"}");
}

#[test]
fn preferences_are_parameters() {
    let mut request = request(WIRE, vec![Message::user(vec![Block::text("go")])]);
    let body = encode(&request);
    assert_eq!((body.get("text"), body.get("service_tier")), (None, None));
    request.context.verbosity = Some(crate::spec::Verbosity::Low);
    request.context.fast = true;
    let body = encode(&request);
    assert_eq!(body["text"]["verbosity"], "low");
    assert_eq!(body["service_tier"], "priority");
}

#[test]
fn an_effort_is_sent() {
    let mut context = crate::fixture::context(crate::message::Wire::OpenaiResponses);
    context.effort = Some(crate::event::Effort::High);
    let mut journal = crate::fixture::Journal::new();
    journal.prompt(1, "hi");
    let request = crate::request::answer(&journal.window(), &context).unwrap();
    let body = crate::wire::encode(&request);
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
}
