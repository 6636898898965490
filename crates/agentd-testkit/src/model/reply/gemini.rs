//! Gemini `generateContent`.

use super::super::script::{Item, pieces};
use super::{Event, Reply, SOURCE};
use serde_json::{Value, json};

const SIGNATURE: &str = "c2lnbmF0dXJl";

fn response(reply: &Reply<'_>, parts: &[Value], last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if last {
        candidate["finishReason"] = json!("STOP");
        let is_search = |item: &Item| matches!(item, Item::Search(_));
        if reply.items.iter().any(is_search) {
            candidate["groundingMetadata"] = json!({"groundingChunks": [{"web": {"uri": SOURCE}}]});
        }
    }
    let (input, output) = (reply.input_tokens, reply.output_tokens());
    json!({"responseId": format!("g{}", reply.number), "modelVersion": reply.model,
           "candidates": [candidate],
           "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output,
                             "totalTokenCount": input + output}})
}

/// The parts of an item, in pieces where it streams.
fn parts(item: &Item, deltas: usize) -> Vec<Value> {
    match item {
        Item::Text { text, .. } => {
            let pieces = pieces(text, deltas).into_iter();
            pieces.map(|piece| json!({"text": piece})).collect()
        }
        Item::Thinking(text) => {
            let pieces = pieces(text, deltas).into_iter();
            let mut parts: Vec<Value> = pieces
                .map(|piece| json!({"text": piece, "thought": true}))
                .collect();
            if let Some(last) = parts.last_mut() {
                last["thoughtSignature"] = json!(SIGNATURE);
            }
            parts
        }
        Item::Call { name, arguments } => vec![json!({
            "functionCall": {"name": name, "args": arguments},
            "thoughtSignature": SIGNATURE,
        })],
        Item::Cited(text) => vec![json!({"text": text})],
        Item::Search(_) | Item::Found | Item::Pause => Vec::new(),
        Item::Native => {
            vec![json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}})]
        }
    }
}

pub fn whole(reply: &Reply<'_>) -> Value {
    let all: Vec<Value> = reply.items.iter().flat_map(|item| parts(item, 1)).collect();
    response(reply, &all, true)
}

pub fn stream(reply: &Reply<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    for item in reply.items {
        let (deltas, pause) = match item {
            Item::Text { deltas, pause, .. } => (*deltas, *pause),
            _ => (3, std::time::Duration::ZERO),
        };
        for part in parts(item, deltas) {
            events.push(Event::plain(&response(reply, &[part], false)).after(pause));
        }
    }
    events.push(Event::plain(&response(reply, &[], true)));
    events
}
