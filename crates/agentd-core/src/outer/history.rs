//! The conversation so far, as text, for a child that does not know it.

use crate::message::{Arguments, Block};
use crate::window::{Entry, Item};

/// How much of the conversation a new child is given, in bytes. The newest part is kept.
const LONGEST: usize = 64 * 1024;
/// How much of its replies is compared with what a child repeats, in bytes.
const LONGEST_REPLIES: usize = 256 * 1024;
/// How much of one item.
const LONGEST_ITEM: usize = 8 * 1024;

/// The items as text, bounded. `None` if there is nothing to tell.
pub fn so_far(items: &[Item]) -> Option<String> {
    let mut parts = Vec::new();
    let mut bytes = 0;
    let mut is_cut = false;
    for item in items.iter().rev() {
        let Some(part) = part(item) else { continue };
        if bytes + part.len() > LONGEST {
            is_cut = true;
            break;
        }
        bytes += part.len();
        parts.push(part);
    }
    if parts.is_empty() {
        return None;
    }
    if is_cut {
        parts.push("[The beginning of the conversation is left out.]".to_owned());
    }
    parts.reverse();
    Some(parts.join("\n\n"))
}

/// The texts of the replies in these items, bounded. Whole texts are left out, the oldest first.
pub fn replies(items: &[Item]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    let replies = items.iter().rev().filter_map(|item| match &item.entry {
        Entry::Reply { blocks, .. } => Some(blocks),
        _ => None,
    });
    for block in replies.flat_map(|blocks| blocks.iter().rev()) {
        if let Block::Text { text } = block {
            bytes += text.len();
            if bytes > LONGEST_REPLIES {
                break;
            }
            texts.push(text.clone());
        }
    }
    texts.reverse();
    texts
}

fn part(item: &Item) -> Option<String> {
    let (role, text) = match &item.entry {
        Entry::Prompt(blocks) => ("User", words(blocks)),
        Entry::Reply { blocks, .. } => ("Assistant", words(blocks)),
        Entry::Result(result) => ("Result of a call", words(&result.blocks)),
        Entry::Notice(text) => ("Notice", text.clone()),
        Entry::Summary(text) => ("Summary", text.clone()),
    };
    let text = shortened(text.trim());
    (!text.is_empty()).then(|| format!("{role}: {text}"))
}

fn words(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } | Block::Annotated { text, .. } | Block::Notice { text } => {
            Some(text.clone())
        }
        Block::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
                Arguments::Malformed(raw) => raw.clone(),
            };
            Some(format!("[called {} {arguments}]", call.name))
        }
        Block::Attachment(attachment) => Some(format!("[file {}]", attachment.name)),
        Block::Image { .. } => Some("[image]".to_owned()),
        _ => None,
    };
    blocks
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_ITEM {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_ITEM);
    format!("{} […]", &text[..end])
}
