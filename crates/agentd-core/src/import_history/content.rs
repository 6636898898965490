//! Parts of messages that several programs write alike.

use super::record::{string_or_json, text};
use crate::id::CallId;
use crate::message::{Arguments, Block, ToolCall};
use serde_json::Value;

/// A call, with the id that it has in the file.
pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Block {
    let arguments = match arguments {
        Value::Object(map) => Arguments::Object(map.clone()),
        Value::Null => Arguments::parse(""),
        Value::String(raw) => Arguments::parse(raw),
        other => Arguments::Malformed(string_or_json(other)),
    };
    Block::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments,
        signature: None,
    })
}

/// Thinking as it is kept. A signature is valid only after the messages, the instructions and the tools that it was made
/// for, so it is of no use here, and thinking without one is not sent.
pub(super) fn thinking(text: &str) -> Block {
    let (text, signature) = (text.to_owned(), None);
    Block::Thinking { text, signature }
}

/// An image in base64, if the record contains it and its type is one that providers accept.
pub(super) fn image(media_type: Option<&str>, data: Option<&str>) -> Option<Block> {
    const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let media_type = media_type.filter(|of| TYPES.contains(of))?.to_owned();
    let data = data.filter(|data| !data.is_empty())?.to_owned();
    Some(Block::Image { media_type, data })
}

/// An image in a `data:` URL.
pub(super) fn image_of_url(url: &str) -> Option<Block> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    image(Some(media_type), Some(data))
}

/// The content of an MCP result: text, images, and what has another type as JSON.
pub(super) fn of_mcp(item: &Value) -> Option<Block> {
    match text(item, "type") {
        Some("text") => text(item, "text").map(Block::text),
        Some("image") => image(text(item, "mimeType"), text(item, "data")),
        _ => None,
    }
}
