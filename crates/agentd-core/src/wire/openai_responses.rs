//! OpenAI Responses, stateless: the provider stores nothing, so everything is sent.

use super::{PDF, data_url, notice_text, pdf, with};
use crate::canonical;
use crate::message::{Block, Message, Role, ToolResult};
use crate::request::Request;
use crate::spec::ServerTool;
use serde_json::{Value, json};
use std::collections::HashSet;

pub fn encode(request: &Request) -> Value {
    let context = &request.context;
    let mut input = Vec::new();
    let mut ids = HashSet::new();
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut input),
            Role::Assistant => assistant(message, &mut ids, &mut input),
        }
    }
    let body = json!({
        "model": context.model,
        "max_output_tokens": context.max_output_tokens,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "stream": true,
    });
    let mut body = with(body, "input", input);
    if !context.system.trim().is_empty() {
        body["instructions"] = json!(context.system);
    }
    let own = context.tools.iter().map(|tool| {
        json!({"type": "function", "name": tool.name, "description": tool.description,
               "parameters": tool.parameters, "strict": false})
    });
    let tools: Vec<Value> = own
        .chain(context.server_tools.iter().map(server_tool))
        .collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
        if !request.may_call {
            body["tool_choice"] = json!("none");
        }
    }
    if let Some(temperature) = context.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(effort) = context.effort {
        body["reasoning"] = json!({"effort": effort});
    }
    if let Some(verbosity) = context.verbosity {
        body["text"] = json!({"verbosity": verbosity});
    }
    if context.fast {
        body["service_tier"] = json!("priority");
    }
    body
}

fn server_tool(tool: &ServerTool) -> Value {
    match tool {
        ServerTool::WebSearch => json!({"type": "web_search"}),
    }
}

fn user(message: &Message, out: &mut Vec<Value>) {
    out.extend(
        message
            .blocks
            .iter()
            .filter_map(Block::as_result)
            .map(result),
    );
    let parts: Vec<Value> = message.blocks.iter().filter_map(part).collect();
    if !parts.is_empty() {
        let value = json!({"type": "message", "role": "user"});
        out.push(with(value, "content", parts));
    }
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Block::Notice { text } => Some(json!({"type": "input_text", "text": notice_text(text)})),
        Block::Image { media_type, data } => Some(json!({
            "type": "input_image", "detail": "auto",
            "image_url": data_url(media_type, data),
        })),
        Block::Attachment(_) => pdf(block).map(|(name, data)| {
            json!({"type": "input_file", "filename": name, "file_data": data_url(PDF, data)})
        }),
        Block::Native { item, .. } => Some(item.clone()),
        _ => None,
    }
}

fn result(result: &ToolResult) -> Value {
    let mut parts: Vec<Value> = result.blocks.iter().filter_map(part).collect();
    let output = match parts.as_mut_slice() {
        [only] if only["type"] == "input_text" => only["text"].take(),
        _ => parts.into(),
    };
    let value = json!({"type": "function_call_output", "call_id": result.call});
    with(value, "output", output)
}

fn assistant<'a>(message: &'a Message, ids: &mut HashSet<&'a str>, out: &mut Vec<Value>) {
    for block in &message.blocks {
        match block {
            Block::Text { text } => out.push(plain(text)),
            Block::Thinking {
                text,
                signature: Some(signature),
            } => {
                let mut summary = Vec::new();
                if !text.trim().is_empty() {
                    summary.push(json!({"type": "summary_text", "text": text}));
                }
                out.push(json!({
                    "type": "reasoning", "id": signature.id, "summary": summary,
                    "encrypted_content": signature.value,
                }));
            }
            Block::ToolCall(call) => out.push(json!({
                "type": "function_call", "call_id": call.id, "name": call.name,
                "arguments": canonical::text(call.arguments.to_object()),
            })),
            Block::Annotated { text, item, .. } => output_message(item, Some(text), ids, out),
            Block::Native { item, .. } if item["type"] == "message" => {
                output_message(item, None, ids, out);
            }
            Block::Native { item, .. } => out.push(item.clone()),
            _ => {}
        }
    }
}

/// The text of an assistant without the id of its message. Output parts would require one.
fn plain(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// A message with one part of its content, as the API gave it. `text` is the part's text if the item is kept without it.
fn output_message<'a>(
    item: &'a Value,
    text: Option<&str>,
    ids: &mut HashSet<&'a str>,
    out: &mut Vec<Value>,
) {
    let mut part = item["content"][0].clone();
    let refusal = part["refusal"].as_str().map(str::to_owned);
    if let (Some(text), Some(part)) = (text, part.as_object_mut()) {
        part.entry("annotations").or_insert_with(|| json!([]));
        part.insert("text".to_owned(), json!(text));
    }
    let id = message_id(item).filter(|_| part.is_object());
    let last = out
        .last_mut()
        .filter(|last| id.is_some() && last["id"].as_str() == id);
    if let Some(content) = last.and_then(|last| last["content"].as_array_mut()) {
        content.push(part);
        return;
    }
    match id {
        Some(id) if ids.insert(id) => {
            let message = json!({
                "type": "message", "role": "assistant", "id": id, "status": item["status"],
            });
            let mut message = with(message, "content", vec![part]);
            if let Some(phase) = item.get("phase") {
                message["phase"] = phase.clone();
            }
            out.push(message);
        }
        _ => out.extend(text.or(refusal.as_deref()).map(plain)),
    }
}

/// The id that the API gave a message, if it can be sent back: OpenAI accepts only its own form, and only with a status.
fn message_id(item: &Value) -> Option<&str> {
    let id = item["id"].as_str()?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_own = id.starts_with("msg") && id.len() <= 64 && id.bytes().all(is_word);
    (is_own && item["status"].is_string()).then_some(id)
}
