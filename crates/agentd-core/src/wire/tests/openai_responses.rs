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
            {"role": "assistant", "content": "I look."},
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

fn annotated(text: &str, item: serde_json::Value) -> Block {
    Block::Annotated {
        text: text.to_owned(),
        wire: WIRE,
        item,
    }
}

/// The items of these replies, each in a turn of its own.
fn sent(replies: Vec<Vec<Block>>) -> Vec<serde_json::Value> {
    let mut messages = Vec::new();
    for blocks in replies {
        messages.push(Message::user(vec![Block::text("go")]));
        messages.push(Message::assistant(blocks));
    }
    let body = body(WIRE, messages);
    let items = body["input"].as_array().unwrap().iter();
    let own = items.filter(|item| item["role"] == "assistant");
    own.cloned().collect()
}

/// Regression: `output_text` was sent without the id and the status that its type requires.
#[test]
fn output_text_has_the_id_that_the_api_gave() {
    let part = json!({"type": "output_text", "annotations": [{"type": "url_citation"}]});
    let item = json!({"type": "message", "id": "msg_1", "status": "completed",
                      "role": "assistant", "phase": "final_answer", "content": [part]});
    let refused = json!({"type": "message", "id": "msg_1", "status": "completed",
                         "content": [{"type": "refusal", "refusal": "no"}]});
    let native = Block::Native {
        wire: WIRE,
        item: refused,
    };
    let expected = json!({
        "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "phase": "final_answer",
        "content": [
            {"type": "output_text", "text": "so", "annotations": [{"type": "url_citation"}]},
            {"type": "refusal", "refusal": "no"},
        ],
    });
    assert_eq!(sent(vec![vec![annotated("so", item), native]]), [expected]);
}

/// Regression: an id was never sent, and none may be invented.
#[test]
fn text_without_a_usable_id_is_plain() {
    let of = |id: &str, status: &str| {
        let mut item = json!({"type": "message", "content": [{"type": "output_text"}]});
        for (key, value) in [("id", id), ("status", status)] {
            if !value.is_empty() {
                item[key] = json!(value);
            }
        }
        item
    };
    // As agentd 0.1 stored cited text.
    let old = json!({"type": "output_text", "text": "so", "annotations": [{}]});
    for item in [
        of("", "completed"),
        of("chatcmpl-1", "completed"),
        of("msg_1", ""),
        old,
    ] {
        let plain = json!({"role": "assistant", "content": "so"});
        assert_eq!(sent(vec![vec![annotated("so", item)]]), [plain]);
    }
    let refused = json!({"type": "message", "role": "assistant",
                         "content": [{"type": "refusal", "refusal": "no"}]});
    let native = Block::Native {
        wire: WIRE,
        item: refused,
    };
    let plain = json!({"role": "assistant", "content": "no"});
    assert_eq!(sent(vec![vec![native]]), [plain]);
}

#[test]
fn an_id_that_a_server_gave_twice_is_sent_once() {
    let item = json!({"type": "message", "id": "msg_1", "status": "completed",
                      "content": [{"type": "output_text", "annotations": []}]});
    let first = annotated("one", item.clone());
    let sent = sent(vec![vec![first], vec![annotated("two", item)]]);
    assert_eq!(sent[0]["id"], "msg_1");
    assert_eq!(sent[1], json!({"role": "assistant", "content": "two"}));
}
