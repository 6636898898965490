//! OpenAI Responses, stateless: the provider stores nothing, so everything is sent.

use super::{PDF, data_url, notice_text, pdf, with};
use crate::canonical;
use crate::message::{Block, Message, Role, ToolResult};
use crate::request::Request;
use crate::spec::ServerTool;
use serde_json::{Value, json};

pub fn encode(request: &Request) -> Value {
    let context = &request.context;
    let mut input = Vec::new();
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut input),
            Role::Assistant => assistant(message, &mut input),
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

fn assistant(message: &Message, out: &mut Vec<Value>) {
    for block in &message.blocks {
        match block {
            Block::Text { text } => out.push(json!({
                "type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            })),
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
            Block::Annotated { item, .. } => out.push(json!({
                "type": "message", "role": "assistant", "content": [item],
            })),
            Block::Native { item, .. } => out.push(item.clone()),
            _ => {}
        }
    }
}
