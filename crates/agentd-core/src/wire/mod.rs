//! A request in the words of each provider: the JSON body, exactly as it is sent.
//!
//! One file per format. Nothing is decided here: [`crate::request`] has chosen and
//! [`crate::repair`] has put in order what is only spelled out.

pub mod anthropic;
pub mod failure;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod stream;

use crate::message::{Block, Wire};
use crate::request::Request;
use serde_json::Value;

/// The body to send, as it travels.
pub fn body(request: &Request) -> Vec<u8> {
    let value = encode(request);
    // What is a value already always has a text.
    serde_json::to_vec(&value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// The body to send.
pub fn encode(request: &Request) -> Value {
    match request.context.wire {
        Wire::AnthropicMessages => anthropic::encode(request),
        Wire::OpenaiChat => openai_chat::encode(request),
        Wire::OpenaiResponses => openai_responses::encode(request),
        Wire::Gemini => gemini::encode(request),
    }
}

/// Where a format's messages stand in its body: what prefix stability is about.
pub fn messages(wire: Wire, body: &Value) -> Option<&Vec<Value>> {
    let key = match wire {
        Wire::AnthropicMessages | Wire::OpenaiChat => "messages",
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
    };
    body.get(key).and_then(Value::as_array)
}

/// Puts a value into an object without copying it, as `json!` would: a window can have thousands of messages.
fn with(mut object: Value, key: &str, value: impl Into<Value>) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value.into());
    }
    object
}

/// A notice travels as text of the user's, in a mark of its own.
fn notice_text(text: &str) -> String {
    format!("<notice>\n{text}\n</notice>")
}

/// The words of a result, for formats that take one string.
fn result_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        "(see the image that follows)".to_owned()
    } else {
        text
    }
}

/// The images in results, for formats that take none inside a result.
fn result_images(blocks: &[Block]) -> impl Iterator<Item = (&str, &str)> {
    blocks
        .iter()
        .filter_map(Block::as_result)
        .flat_map(|result| &result.blocks)
        .filter_map(|block| match block {
            Block::Image { media_type, data } => Some((media_type.as_str(), data.as_str())),
            _ => None,
        })
}

#[cfg(test)]
mod tests;
