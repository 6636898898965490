//! OpenAI Responses.

use super::super::script::{Item, pieces};
use super::{Event, Reply, SOURCE};
use serde_json::{Value, json};

fn item(reply: &Reply<'_>, index: usize, item: &Item) -> Value {
    let number = reply.number;
    match item {
        Item::Text { text, .. } => json!({
            "type": "message", "id": format!("msg_{number}_{index}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Item::Thinking(text) => json!({
            "type": "reasoning", "id": format!("rs_{number}_{index}"),
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": "ZW5jcnlwdGVk",
        }),
        Item::Call { name, arguments } => json!({
            "type": "function_call", "id": format!("fc_{number}_{index}"),
            "call_id": format!("call_{number}_{index}"), "name": name,
            "arguments": arguments.to_string(), "status": "completed",
        }),
        Item::Native => json!({
            "type": "message", "id": format!("msg_{number}_{index}"), "role": "assistant",
            "status": "completed", "content": [{"type": "refusal", "refusal": "no"}],
        }),
        Item::Search(query) => json!({
            "type": "web_search_call", "id": format!("ws_{number}_{index}"),
            "status": "completed", "action": {"type": "search", "query": query},
        }),
        Item::Cited(text) => json!({
            "type": "message", "id": format!("msg_{number}_{index}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": [
                {"type": "url_citation", "start_index": 0, "end_index": 1, "url": SOURCE,
                 "title": "Found"},
            ]}],
        }),
        Item::Found | Item::Pause => Value::Null,
    }
}

/// The items of the output. The result of a search is not one of them.
fn items<'a>(reply: &'a Reply<'_>) -> impl Iterator<Item = (usize, &'a Item)> {
    let is_item = |item: &&Item| !matches!(item, Item::Found | Item::Pause);
    reply.items.iter().filter(is_item).enumerate()
}

pub fn whole(reply: &Reply<'_>) -> Value {
    let output: Vec<Value> = items(reply)
        .map(|(i, given)| item(reply, i, given))
        .collect();
    let (input, tokens) = (reply.input_tokens, reply.output_tokens());
    json!({"id": format!("resp_{}", reply.number), "object": "response", "status": "completed",
           "model": reply.model, "output": output,
           "usage": {"input_tokens": input, "output_tokens": tokens,
                     "total_tokens": input + tokens,
                     "input_tokens_details": {"cached_tokens": 0}}})
}

pub fn stream(reply: &Reply<'_>) -> Vec<Event> {
    let created = json!({"type": "response.created",
                         "response": {"id": format!("resp_{}", reply.number)}});
    let mut events = vec![Event::named("response.created", &created)];
    for (index, given) in items(reply) {
        item_events(index, given, &item(reply, index, given), &mut events);
    }
    let completed = json!({"type": "response.completed", "response": whole(reply)});
    events.push(Event::named("response.completed", &completed));
    events
}

fn item_events(index: usize, given: &Item, whole: &Value, events: &mut Vec<Event>) {
    let mut empty = whole.clone();
    match given {
        Item::Text { .. } | Item::Native | Item::Cited(_) => empty["content"] = json!([]),
        Item::Search(_) => empty["status"] = json!("in_progress"),
        Item::Found | Item::Pause => {}
        Item::Thinking(_) => empty["summary"] = json!([]),
        Item::Call { .. } => empty["arguments"] = json!(""),
    }
    let event = |name: &'static str, more: &[(&str, Value)]| {
        let mut data = json!({"type": name, "output_index": index});
        for (key, value) in more {
            data[*key] = value.clone();
        }
        Event::named(name, &data)
    };
    events.push(event("response.output_item.added", &[("item", empty)]));
    match given {
        Item::Text {
            text,
            deltas,
            pause,
        } => {
            for piece in pieces(text, *deltas) {
                let more = [("content_index", json!(0)), ("delta", json!(piece))];
                events.push(event("response.output_text.delta", &more).after(*pause));
            }
            let more = [
                ("content_index", json!(0)),
                ("part", whole["content"][0].clone()),
            ];
            events.push(event("response.content_part.done", &more));
        }
        Item::Thinking(text) => {
            for piece in pieces(text, 3) {
                let more = [("summary_index", json!(0)), ("delta", json!(piece))];
                events.push(event("response.reasoning_summary_text.delta", &more));
            }
        }
        Item::Call { arguments, .. } => {
            for piece in pieces(&arguments.to_string(), 4) {
                let more = [("delta", json!(piece))];
                events.push(event("response.function_call_arguments.delta", &more));
            }
        }
        Item::Search(_) | Item::Found | Item::Pause => {}
        Item::Cited(text) => {
            let more = [("content_index", json!(0)), ("delta", json!(text))];
            events.push(event("response.output_text.delta", &more));
            let more = [
                ("content_index", json!(0)),
                ("part", whole["content"][0].clone()),
            ];
            events.push(event("response.content_part.done", &more));
        }
        Item::Native => {
            let more = [
                ("content_index", json!(0)),
                ("part", whole["content"][0].clone()),
            ];
            events.push(event("response.content_part.done", &more));
        }
    }
    events.push(event(
        "response.output_item.done",
        &[("item", whole.clone())],
    ));
}
