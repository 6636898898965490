//! Prompts as a command reads them.

use agentd_core::message::{AttachedFile, Block};
use agentd_core::outer::Delivery;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// The prompts as text. A file of text is added to it; other files are named only.
pub fn text(delivery: &Delivery) -> String {
    let blocks = delivery.prompts.iter().flatten();
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } | Block::Notice { text } => {
            Some(text.clone())
        }
        Block::Image { .. } => Some("[an image that this program cannot be given]".to_owned()),
        Block::Attachment(attachment) => Some(match &attachment.file {
            AttachedFile::Text { text } => format!("File {}:\n{text}", attachment.name),
            AttachedFile::Image { .. } | AttachedFile::Pdf { .. } => {
                format!(
                    "[the file {} cannot be given to this program]",
                    attachment.name
                )
            }
        }),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The prompts as a frame of `agentd agent`.
pub fn object(delivery: &Delivery) -> Value {
    let blocks = || delivery.prompts.iter().flatten();
    let input = blocks().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } | Block::Notice { text } => {
            Some(json!({"type": "text", "text": text}))
        }
        Block::Image { media_type, data } => {
            Some(json!({"type": "image", "media_type": media_type, "data": data}))
        }
        _ => None,
    });
    let files = blocks().filter_map(Block::as_attachment);
    let files = files.map(|attachment| match &attachment.file {
        AttachedFile::Text { text } => {
            json!({"name": attachment.name, "data": BASE64.encode(text)})
        }
        AttachedFile::Image { media_type, data } => {
            json!({"name": attachment.name, "media_type": media_type, "data": data})
        }
        AttachedFile::Pdf { data, .. } => {
            json!({"name": attachment.name, "media_type": "application/pdf", "data": data})
        }
    });
    let (input, files): (Vec<Value>, Vec<Value>) = (input.collect(), files.collect());
    // A program that was killed may continue the turn before: it is over here.
    let mut frame = json!({"v": 1, "turn_id": delivery.id, "mode": "interrupt", "input": input});
    if !files.is_empty() {
        frame["attachments"] = Value::Array(files);
    }
    frame
}

/// A frame ends with a NUL, and has none inside.
pub fn ended(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.retain(|byte| *byte != 0);
    bytes.push(0);
    bytes
}
