//! Anthropic Messages.

use super::{PDF, notice_text, pdf, with};
use crate::message::{Block, Message, Role};
use crate::request::Request;
use crate::spec::ServerTool;
use serde_json::{Value, json};

pub fn encode(request: &Request) -> Value {
    let context = &request.context;
    let mut messages: Vec<Value> = request.messages.iter().map(message).collect();
    mark_for_cache(messages.last_mut());
    let body = json!({
        "model": context.model,
        "max_tokens": context.max_output_tokens,
        "stream": true,
    });
    let mut body = with(body, "messages", messages);
    if !context.system.trim().is_empty() {
        body["system"] = json!([{
            "type": "text", "text": context.system, "cache_control": {"type": "ephemeral"},
        }]);
    }
    let own = context.tools.iter().map(|tool| {
        json!({
            "name": tool.name, "description": tool.description,
            "input_schema": tool.parameters,
        })
    });
    let tools: Vec<Value> = own
        .chain(context.server_tools.iter().map(server_tool))
        .collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
        if !request.may_call {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    if let Some(effort) = context.effort {
        body["thinking"] = json!({"type": "adaptive"});
        body["output_config"] = json!({"effort": effort});
        return body;
    }
    match context.thinking_tokens {
        Some(budget) if budget < context.max_output_tokens && may_think(&request.messages) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        // The provider refuses a temperature together with thinking.
        _ => {
            if let Some(temperature) = context.temperature {
                body["temperature"] = json!(temperature);
            }
        }
    }
    body
}

fn server_tool(tool: &ServerTool) -> Value {
    match tool {
        ServerTool::WebSearch => json!({"type": "web_search_20250305", "name": tool.name()}),
    }
}

/// In the middle of a tool loop, thinking can only be on if the reply with the calls began with it.
fn may_think(messages: &[Message]) -> bool {
    let last_reply = messages.iter().rev().find(|m| m.role == Role::Assistant);
    last_reply.is_none_or(|reply| {
        let calls = reply.calls().next().is_some();
        !calls || reply.blocks.first().is_some_and(Block::is_sealed_thinking)
    })
}

/// The provider caches everything up to this mark; the next request begins with it.
fn mark_for_cache(last: Option<&mut Value>) {
    let block = last
        .and_then(|message| message["content"].as_array_mut())
        .and_then(|content| content.last_mut());
    if let Some(block) = block {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> = message.blocks.iter().filter_map(block).collect();
    with(json!({"role": role}), "content", content)
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Notice { text } => json!({"type": "text", "text": notice_text(text)}),
        Block::Thinking { text, signature } => json!({
            "type": "thinking", "thinking": text, "signature": signature.as_ref()?.value,
        }),
        Block::Image { media_type, data } => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        }),
        Block::Attachment(_) => {
            let (name, data) = pdf(block)?;
            json!({
                "type": "document", "title": name,
                "source": {"type": "base64", "media_type": PDF, "data": data},
            })
        }
        Block::ToolCall(call) => {
            let value = json!({"type": "tool_use", "id": call.id, "name": call.name});
            with(value, "input", call.arguments.to_object())
        }
        Block::ToolResult(result) => {
            let content: Vec<Value> = result.blocks.iter().filter_map(self::block).collect();
            let value = json!({"type": "tool_result", "tool_use_id": result.call});
            let mut value = with(value, "content", content);
            // A result that is marked as an error may contain only text.
            let is_text = |block: &Block| matches!(block, Block::Text { .. });
            if !result.outcome.is_ok() && result.blocks.iter().all(is_text) {
                value["is_error"] = json!(true);
            }
            value
        }
        Block::Native { item, .. } | Block::Annotated { item, .. } => item.clone(),
        Block::Cut { .. } => return None,
    })
}
