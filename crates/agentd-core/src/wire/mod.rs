//! A request in each provider's format: the JSON body, exactly as it is sent.
//!
//! One file per format. Nothing is decided here: [`crate::request`] has selected the content and [`crate::repair`]
//! has put it in order.

pub mod anthropic;
pub mod failure;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod stream;

use crate::canonical;
use crate::message::{AttachedFile, Block, Wire};
use crate::request::Request;
use serde_json::Value;

/// The body as the bytes to send.
pub fn body(request: &Request) -> Vec<u8> {
    let value = encode(request);
    // A JSON value can always be serialized.
    serde_json::to_vec(&value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// The body to send. Its keys are sorted, so the order in which a model, a hook or a journal wrote them does not change
/// what a provider has in its prompt cache.
pub fn encode(request: &Request) -> Value {
    let body = match request.context.wire {
        Wire::AnthropicMessages => anthropic::encode(request),
        Wire::OpenaiChat => openai_chat::encode(request),
        Wire::OpenaiResponses => openai_responses::encode(request),
        Wire::Gemini => gemini::encode(request),
    };
    canonical::sorted(body)
}

/// Where a format has its messages in the body. Prefix stability is about these.
pub fn messages(wire: Wire, body: &Value) -> Option<&Vec<Value>> {
    let key = match wire {
        Wire::AnthropicMessages | Wire::OpenaiChat => "messages",
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
    };
    body.get(key).and_then(Value::as_array)
}

/// Puts a value into an object without the copy that `json!` makes: a window can have thousands of messages.
fn with(mut object: Value, key: &str, value: impl Into<Value>) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value.into());
    }
    object
}

/// The name and the data of an attached PDF. Other attachments are not in a request.
fn pdf(block: &Block) -> Option<(&str, &str)> {
    let attachment = block.as_attachment()?;
    match &attachment.file {
        AttachedFile::Pdf { data, .. } => Some((&attachment.name, data)),
        AttachedFile::Text { .. } | AttachedFile::Image { .. } => None,
    }
}

fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}

const PDF: &str = "application/pdf";

/// A notice is sent as the user's text, in its own tag.
fn notice_text(text: &str) -> String {
    format!("<notice>\n{text}\n</notice>")
}

/// The text of a result, for formats that accept one string.
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

/// The images in results, for formats that do not accept them inside a result.
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
