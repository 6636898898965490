//! Anthropic Messages.

use super::super::script::{Item, pieces};
use super::{Event, Reply, SOURCE};
use serde_json::{Value, json};

fn stop_reason(reply: &Reply<'_>) -> &'static str {
    if reply.items.contains(&Item::Pause) {
        "pause_turn"
    } else if reply.calls() {
        "tool_use"
    } else {
        "end_turn"
    }
}

fn usage(reply: &Reply<'_>, output_tokens: u64) -> Value {
    json!({"input_tokens": reply.input_tokens, "cache_read_input_tokens": 0,
           "cache_creation_input_tokens": 0, "output_tokens": output_tokens})
}

fn message(reply: &Reply<'_>, content: &[Value], stop: Option<&str>, output: u64) -> Value {
    json!({"id": format!("msg_{}", reply.number), "type": "message", "role": "assistant",
           "model": reply.model, "content": content, "stop_reason": stop,
           "stop_sequence": null, "usage": usage(reply, output)})
}

fn block(reply: &Reply<'_>, index: usize, item: &Item) -> Value {
    match item {
        Item::Text { text, .. } => json!({"type": "text", "text": text}),
        Item::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": reply.signature})
        }
        Item::Call { name, arguments } => json!({
            "type": "tool_use", "id": format!("toolu_{}_{index}", reply.number),
            "name": name, "input": arguments,
        }),
        Item::Native => json!({"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}),
        Item::Search(query) => json!({
            "type": "server_tool_use", "id": format!("srvtoolu_{}_{index}", reply.number),
            "name": "web_search", "input": {"query": query},
        }),
        Item::Found => json!({
            "type": "web_search_tool_result",
            "tool_use_id": format!("srvtoolu_{}_{}", reply.number, index.saturating_sub(1)),
            "content": [{"type": "web_search_result", "url": SOURCE, "title": "Found",
                         "encrypted_content": "ZW5jcnlwdGVk", "page_age": "1 day"}],
        }),
        Item::Cited(text) => json!({"type": "text", "text": text, "citations": [citation()]}),
        Item::Pause => Value::Null,
    }
}

fn citation() -> Value {
    json!({"type": "web_search_result_location", "url": SOURCE, "title": "Found",
           "encrypted_index": "aW5kZXg=", "cited_text": "found"})
}

/// The items that are blocks of the message.
fn blocks<'a>(reply: &'a Reply<'_>) -> impl Iterator<Item = (usize, &'a Item)> {
    let items = reply.items.iter().filter(|item| **item != Item::Pause);
    items.enumerate()
}

pub fn whole(reply: &Reply<'_>) -> Value {
    let content: Vec<Value> = blocks(reply)
        .map(|(i, item)| block(reply, i, item))
        .collect();
    message(
        reply,
        &content,
        Some(stop_reason(reply)),
        reply.output_tokens(),
    )
}

pub fn stream(reply: &Reply<'_>) -> Vec<Event> {
    let start = json!({"type": "message_start", "message": message(reply, &[], None, 1)});
    let mut events = vec![
        Event::named("message_start", &start),
        Event::named("ping", &json!({"type": "ping"})),
    ];
    for (index, item) in blocks(reply) {
        block_events(reply, index, item, &mut events);
    }
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let usage = json!({"output_tokens": reply.output_tokens()});
    let delta = json!({"type": "message_delta", "delta": delta, "usage": usage});
    events.push(Event::named("message_delta", &delta));
    events.push(Event::named(
        "message_stop",
        &json!({"type": "message_stop"}),
    ));
    events
}

fn block_events(reply: &Reply<'_>, index: usize, item: &Item, events: &mut Vec<Event>) {
    let whole = block(reply, index, item);
    let mut empty = whole.clone();
    match item {
        Item::Text { .. } => empty["text"] = json!(""),
        Item::Thinking(_) => {
            empty["thinking"] = json!("");
            empty["signature"] = json!("");
        }
        Item::Call { .. } | Item::Search(_) => empty["input"] = json!({}),
        Item::Cited(_) => {
            empty["text"] = json!("");
            empty["citations"] = json!([]);
        }
        Item::Native | Item::Found | Item::Pause => {}
    }
    let start = json!({"type": "content_block_start", "index": index, "content_block": empty});
    events.push(Event::named("content_block_start", &start));
    let grow = |delta: Value| {
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        Event::named("content_block_delta", &data)
    };
    match item {
        Item::Text {
            text,
            deltas,
            pause,
        } => events.extend(
            pieces(text, *deltas)
                .into_iter()
                .map(|piece| grow(json!({"type": "text_delta", "text": piece})).after(*pause)),
        ),
        Item::Thinking(text) => {
            events.extend(
                pieces(text, 3)
                    .into_iter()
                    .map(|piece| grow(json!({"type": "thinking_delta", "thinking": piece}))),
            );
            let signature = json!({"type": "signature_delta", "signature": whole["signature"]});
            events.push(grow(signature));
        }
        Item::Call { arguments, .. } => events.extend(
            pieces(&arguments.to_string(), 4)
                .into_iter()
                .map(|piece| grow(json!({"type": "input_json_delta", "partial_json": piece}))),
        ),
        Item::Search(query) => {
            let input = json!({"query": query}).to_string();
            events.push(grow(
                json!({"type": "input_json_delta", "partial_json": input}),
            ));
        }
        Item::Cited(text) => {
            events.push(grow(
                json!({"type": "citations_delta", "citation": citation()}),
            ));
            events.push(grow(json!({"type": "text_delta", "text": text})));
        }
        Item::Native | Item::Found | Item::Pause => {}
    }
    let stop = json!({"type": "content_block_stop", "index": index});
    events.push(Event::named("content_block_stop", &stop));
}
