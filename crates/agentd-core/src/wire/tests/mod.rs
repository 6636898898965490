//! Golden bodies: the same conversation in each provider's format, and how the formats differ.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
mod pdf;

use super::encode;
use crate::event::Purpose;
use crate::fixture::{call, context, notice, result, thinking};
use crate::id::CallId;
use crate::message::{Arguments, Block, CallOutcome, Message, ToolCall, ToolResult, Wire};
use crate::request::Request;
use serde_json::{Value, json};

fn request(wire: Wire, messages: Vec<Message>) -> Request {
    Request {
        purpose: Purpose::Answer,
        context: context(wire),
        may_call: true,
        messages,
        omissions: Vec::new(),
        repairs: Vec::new(),
    }
}

fn body(wire: Wire, messages: Vec<Message>) -> Value {
    encode(&request(wire, messages))
}

fn image() -> Block {
    Block::Image {
        media_type: "image/png".to_owned(),
        data: "aGk=".to_owned(),
    }
}

fn outcome(id: &str, outcome: CallOutcome, blocks: Vec<Block>) -> Block {
    let call = CallId::new(id);
    Block::ToolResult(ToolResult {
        call,
        outcome,
        blocks,
    })
}

/// A prompt with an image, thinking, a call, its result, a notice, another prompt.
fn conversation(wire: Wire) -> Vec<Message> {
    vec![
        Message::user(vec![Block::text("look"), image()]),
        Message::assistant(vec![
            thinking("hm", wire),
            Block::text("I look."),
            call("call_1"),
        ]),
        Message::user(vec![result("call_1", "two files")]),
        Message::user(vec![notice("restarted")]),
        Message::user(vec![Block::text("and?")]),
    ]
}

/// One failed call, with this text and an image.
fn failure(wire: Wire, blocks: Vec<Block>) -> Value {
    body(
        wire,
        vec![
            Message::user(vec![Block::text("go")]),
            Message::assistant(vec![call("call_1")]),
            Message::user(vec![outcome("call_1", CallOutcome::Error, blocks)]),
        ],
    )
}

fn malformed() -> Message {
    Message::assistant(vec![Block::ToolCall(ToolCall {
        id: CallId::new("call_1"),
        name: "shell".to_owned(),
        arguments: Arguments::Malformed("{oops".to_owned()),
        signature: None,
    })])
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"command": {"type": "string"}}})
}

#[test]
fn the_messages_are_where_prefix_stability_looks_for_them() {
    for wire in Wire::ALL {
        let short = body(wire, conversation(wire)[..1].to_vec());
        let long = body(wire, conversation(wire));
        let (short, long) = (
            super::messages(wire, &short).unwrap(),
            super::messages(wire, &long).unwrap(),
        );
        assert!(!short.is_empty() && short.len() < long.len(), "{wire:?}");
    }
}

/// claude-code#42338, #93490: a request begins with the bytes of the one before, cache marks aside.
#[test]
fn a_longer_conversation_begins_with_the_bytes_of_the_shorter() {
    for wire in Wire::ALL {
        let all = conversation(wire);
        let text = |messages: &[Message]| {
            let body = body(wire, messages.to_vec());
            let messages = super::messages(wire, &body).unwrap();
            let texts = messages.iter().map(|message| {
                let marked = message.to_string();
                marked.replace("\"cache_control\":{\"type\":\"ephemeral\"},", "")
            });
            texts.collect::<Vec<_>>()
        };
        // Up to the model's last reply, and to the end of each later message.
        for end in [1, 3, 4, 5] {
            assert!(text(&all).starts_with(&text(&all[..end])), "{wire:?} {end}");
        }
    }
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    for wire in Wire::ALL {
        let bytes = || body(wire, conversation(wire)).to_string();
        assert_eq!(bytes(), bytes());
    }
}

#[test]
fn a_request_has_the_same_bytes_in_whatever_order_arguments_and_schemas_were_written() {
    let bytes = |wire: Wire, arguments: &str, schema: &str| {
        let call = Block::ToolCall(ToolCall {
            id: CallId::new("call_1"),
            name: "shell".to_owned(),
            arguments: Arguments::parse(arguments),
            signature: None,
        });
        let messages = vec![
            Message::user(vec![Block::text("go")]),
            Message::assistant(vec![call]),
            Message::user(vec![result("call_1", "done")]),
        ];
        let mut request = request(wire, messages);
        request.context.tools[0].parameters = serde_json::from_str(schema).unwrap();
        String::from_utf8(super::body(&request)).unwrap()
    };
    for wire in Wire::ALL {
        let one = bytes(
            wire,
            r#"{"b":{"d":1,"c":2},"a":3}"#,
            r#"{"type":"object","properties":{"b":{},"a":{}}}"#,
        );
        let other = bytes(
            wire,
            r#"{"a":3,"b":{"c":2,"d":1}}"#,
            r#"{"properties":{"a":{},"b":{}},"type":"object"}"#,
        );
        assert_eq!(one, other, "{wire:?}");
        let text = serde_json::from_str::<Value>(&one).unwrap();
        assert_eq!(crate::canonical::sorted(text).to_string(), one);
    }
}
