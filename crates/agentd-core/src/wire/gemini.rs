//! Gemini `generateContent`.

use super::{PDF, notice_text, pdf, result_images, result_text, with};
use crate::id::CallId;
use crate::message::{Block, Message, Role};
use crate::request::Request;
use crate::spec::ServerTool;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the provider names the sources of an answer.
pub(crate) const GROUNDING: &str = "groundingMetadata";

pub fn encode(request: &Request) -> Value {
    let context = &request.context;
    // A result must name its function, which only the call contains.
    let names: BTreeMap<&CallId, &str> = request
        .messages
        .iter()
        .flat_map(Message::calls)
        .map(|call| (&call.id, call.name.as_str()))
        .collect();
    let contents: Vec<Value> = request
        .messages
        .iter()
        .map(|message| content(message, &names))
        .collect();
    let body = json!({"generationConfig": {"maxOutputTokens": context.max_output_tokens}});
    let mut body = with(body, "contents", contents);
    if !context.system.trim().is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": context.system}]});
    }
    if !context.tools.is_empty() {
        let declarations: Vec<Value> = context
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description,
                       "parametersJsonSchema": tool.parameters})
            })
            .collect();
        body["tools"] = json!([{"functionDeclarations": declarations}]);
        if !request.may_call {
            body["toolConfig"] = json!({"functionCallingConfig": {"mode": "NONE"}});
        }
    }
    // The provider accepts a server tool only without functions.
    if context.tools.is_empty() && !context.server_tools.is_empty() && request.may_call {
        body["tools"] = context.server_tools.iter().map(server_tool).collect();
    }
    if let Some(temperature) = context.temperature {
        body["generationConfig"]["temperature"] = json!(temperature);
    }
    if let Some(budget) = context.thinking_tokens {
        body["generationConfig"]["thinkingConfig"] =
            json!({"thinkingBudget": budget, "includeThoughts": true});
    }
    body
}

fn content(message: &Message, names: &BTreeMap<&CallId, &str>) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let results = message.blocks.iter().filter_map(Block::as_result);
    let mut parts: Vec<Value> = results
        .map(|result| {
            let key = if result.outcome.is_ok() {
                "output"
            } else {
                "error"
            };
            json!({"functionResponse": {
                "id": result.call,
                "name": names.get(&result.call).copied().unwrap_or("unknown"),
                "response": {key: result_text(&result.blocks)},
            }})
        })
        .collect();
    parts.extend(result_images(&message.blocks).map(|(media_type, data)| inline(media_type, data)));
    parts.extend(message.blocks.iter().filter_map(part));
    with(json!({"role": role}), "parts", parts)
}

fn server_tool(tool: &ServerTool) -> Value {
    match tool {
        ServerTool::WebSearch => json!({"googleSearch": {}}),
    }
}

/// A part as the provider accepts it back. The sources of an answer are kept in the journal only.
fn without_grounding(item: &Value) -> Option<Value> {
    let mut item = item.clone();
    let part = item.as_object_mut();
    let is_empty = part.is_some_and(|part| {
        part.remove(GROUNDING);
        part.is_empty()
    });
    (!is_empty).then_some(item)
}

fn inline(media_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": data}})
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"text": text})),
        Block::Notice { text } => Some(json!({"text": notice_text(text)})),
        Block::Thinking {
            text,
            signature: Some(signature),
        } => Some(json!({"text": text, "thought": true, "thoughtSignature": signature.value})),
        Block::Image { media_type, data } => Some(inline(media_type, data)),
        Block::Attachment(_) => pdf(block).map(|(_, data)| inline(PDF, data)),
        Block::ToolCall(call) => {
            let mut part = json!({"functionCall": {
                "id": call.id, "name": call.name, "args": call.arguments.to_object(),
            }});
            if let Some(signature) = &call.signature {
                part["thoughtSignature"] = json!(signature.value);
            }
            Some(part)
        }
        Block::Native { item, .. } | Block::Annotated { item, .. } => without_grounding(item),
        _ => None,
    }
}
