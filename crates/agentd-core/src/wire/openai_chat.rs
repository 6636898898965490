//! OpenAI Chat Completions, and everything compatible with it.

use super::{PDF, data_url, notice_text, pdf, result_images, result_text, with};
use crate::canonical;
use crate::message::{Block, Message, Role};
use crate::request::Request;
use serde_json::{Value, json};

pub fn encode(request: &Request) -> Value {
    let context = &request.context;
    let mut messages = Vec::new();
    if !context.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": context.system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.push(assistant(message)),
        }
    }
    let body = json!({
        "model": context.model,
        "max_completion_tokens": context.max_output_tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let mut body = with(body, "messages", messages);
    if !context.tools.is_empty() {
        body["tools"] = context
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description,
                    "parameters": tool.parameters,
                }})
            })
            .collect();
        if !request.may_call {
            body["tool_choice"] = json!("none");
        }
    }
    if let Some(temperature) = context.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(effort) = context.effort {
        body["reasoning_effort"] = json!(effort);
    }
    if let Some(verbosity) = context.verbosity {
        body["verbosity"] = json!(verbosity);
    }
    if context.fast {
        body["service_tier"] = json!("priority");
    }
    body
}

/// Results are separate messages; the rest of the user's message follows them.
fn user(message: &Message, out: &mut Vec<Value>) {
    for result in message.blocks.iter().filter_map(Block::as_result) {
        out.push(json!({
            "role": "tool", "tool_call_id": result.call, "content": result_text(&result.blocks),
        }));
    }
    let mut parts: Vec<Value> = result_images(&message.blocks)
        .map(|(media_type, data)| image(media_type, data))
        .collect();
    parts.extend(message.blocks.iter().filter_map(|block| {
        match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Notice { text } => Some(json!({"type": "text", "text": notice_text(text)})),
        Block::Image { media_type, data } => Some(image(media_type, data)),
        Block::Attachment(_) => pdf(block).map(|(name, data)| {
            json!({"type": "file", "file": {"filename": name, "file_data": data_url(PDF, data)}})
        }),
        Block::Native { item, .. } => Some(item.clone()),
        _ => None,
    }
    }));
    if let Some(content) = content(parts) {
        out.push(with(json!({"role": "user"}), "content", content));
    }
}

/// Servers that are merely compatible accept a string, but not always parts.
fn content(mut parts: Vec<Value>) -> Option<Value> {
    match parts.as_mut_slice() {
        [] => None,
        [only] if only["type"] == "text" => Some(only["text"].take()),
        _ => Some(parts.into()),
    }
}

fn image(media_type: &str, data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": data_url(media_type, data)}})
}

fn assistant(message: &Message) -> Value {
    let parts: Vec<Value> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } | Block::Annotated { text, .. } => {
                Some(json!({"type": "text", "text": text}))
            }
            Block::Native { item, .. } => Some(item.clone()),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let arguments = canonical::text(call.arguments.to_object());
            json!({"id": call.id, "type": "function",
                   "function": {"name": call.name, "arguments": arguments}})
        })
        .collect();
    let mut value = json!({"role": "assistant"});
    if let Some(content) = content(parts) {
        value = with(value, "content", content);
    }
    if !calls.is_empty() {
        value = with(value, "tool_calls", calls);
    }
    value
}
