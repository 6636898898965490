//! OpenAI Chat Completions.

use super::super::script::{Item, pieces};
use super::{Event, Reply};
use serde_json::{Value, json};
use std::time::Duration;

fn finish_reason(reply: &Reply<'_>) -> &'static str {
    if reply.calls() { "tool_calls" } else { "stop" }
}

fn usage(reply: &Reply<'_>) -> Value {
    let (input, output) = (reply.input_tokens, reply.output_tokens());
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
           "prompt_tokens_details": {"cached_tokens": 0}})
}

fn call(reply: &Reply<'_>, index: usize, name: &str, arguments: &str) -> Value {
    json!({"id": format!("call_{}_{index}", reply.number), "type": "function",
           "function": {"name": name, "arguments": arguments}})
}

pub fn whole(reply: &Reply<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    for item in reply.items {
        match item {
            Item::Text { text, .. } => {
                let before = message["content"].as_str().unwrap_or_default();
                message["content"] = json!(format!("{before}{text}"));
            }
            Item::Thinking(text) => message["reasoning_content"] = json!(text),
            Item::Call { name, arguments } => {
                calls.push(call(reply, calls.len(), name, &arguments.to_string()));
            }
            Item::Native => message["refusal"] = json!("no"),
            Item::Search(_) | Item::Found | Item::Cited(_) | Item::Pause => {}
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"id": format!("chatcmpl-{}", reply.number), "object": "chat.completion",
           "model": reply.model, "usage": usage(reply),
           "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}]})
}

pub fn stream(reply: &Reply<'_>) -> Vec<Event> {
    let chunk = |choices: Value, usage: Value| {
        Event::plain(&json!({
            "id": format!("chatcmpl-{}", reply.number), "object": "chat.completion.chunk",
            "model": reply.model, "choices": choices, "usage": usage,
        }))
    };
    let grow = |delta: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            Value::Null,
        )
    };
    let mut events = vec![grow(json!({"role": "assistant", "content": ""}))];
    let mut calls = 0;
    for item in reply.items {
        match item {
            Item::Text {
                text,
                deltas,
                pause,
            } => events.extend(
                pieces(text, *deltas)
                    .into_iter()
                    .map(|piece| grow(json!({"content": piece})).after(*pause)),
            ),
            Item::Thinking(text) => events.extend(
                pieces(text, 3)
                    .into_iter()
                    .map(|piece| grow(json!({"reasoning_content": piece}))),
            ),
            Item::Call { name, arguments } => {
                let mut start = call(reply, calls, name, "");
                start["index"] = json!(calls);
                events.push(grow(json!({"tool_calls": [start]})));
                for piece in pieces(&arguments.to_string(), 4) {
                    let more = json!({"index": calls, "function": {"arguments": piece}});
                    events.push(grow(json!({"tool_calls": [more]})));
                }
                calls += 1;
            }
            Item::Native => events.push(grow(json!({"refusal": "no"}))),
            // The format has no tools of the provider.
            Item::Search(_) | Item::Found | Item::Cited(_) | Item::Pause => {}
        }
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]);
    events.push(chunk(end, Value::Null));
    events.push(chunk(json!([]), usage(reply)));
    events.push(Event {
        name: None,
        data: "[DONE]".to_owned(),
        pause: Duration::ZERO,
    });
    events
}
