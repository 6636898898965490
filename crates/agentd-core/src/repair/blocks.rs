//! Repairs inside one message.

use super::Repair;
use crate::message::{AttachedFile, Block, Message, Role};

const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(super) fn drop_unsendable(messages: &mut [Message], repairs: &mut Vec<Repair>) {
    for message in messages {
        let role = message.role;
        keep(&mut message.blocks, repairs, |block| fits(block, role));
        for block in &mut message.blocks {
            if let Block::ToolResult(result) = block {
                keep(&mut result.blocks, repairs, fits_in_result);
            }
        }
    }
}

fn keep(blocks: &mut Vec<Block>, repairs: &mut Vec<Repair>, fits: impl Fn(&Block) -> bool) {
    blocks.retain(|block| {
        let fits = fits(block);
        if !fits {
            let mut words = Vec::new();
            block.words(&mut words);
            repairs.push(Repair::DroppedUnsendable {
                what: name(block),
                words,
            });
        }
        fits
    });
}

fn fits(block: &Block, role: Role) -> bool {
    match block {
        Block::Text { .. } => true,
        Block::Thinking { signature, .. } => role == Role::Assistant && signature.is_some(),
        Block::ToolCall(_) | Block::Native { .. } | Block::Annotated { .. } => {
            role == Role::Assistant
        }
        Block::ToolResult(_) | Block::Notice { .. } => role == Role::User,
        Block::Image { .. } => role == Role::User && is_image(block),
        Block::Attachment(_) => role == Role::User && is_pdf(block),
        Block::Cut { .. } => false,
    }
}

fn fits_in_result(block: &Block) -> bool {
    matches!(block, Block::Text { .. }) || is_image(block)
}

/// One of the four types that every provider accepts, with base64 data.
fn is_image(block: &Block) -> bool {
    let Block::Image { media_type, data } = block else {
        return false;
    };
    IMAGE_TYPES.contains(&media_type.as_str()) && is_base64(data)
}

/// The only attachment that is sent as such; the request has replaced the others.
fn is_pdf(block: &Block) -> bool {
    let attachment = block.as_attachment();
    attachment
        .is_some_and(|it| matches!(&it.file, AttachedFile::Pdf { data, .. } if is_base64(data)))
}

fn is_base64(data: &str) -> bool {
    let text = data.strip_suffix("==").or_else(|| data.strip_suffix('='));
    let text = text.unwrap_or(data);
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && data.len().is_multiple_of(4) && text.bytes().all(is_one)
}

const fn name(block: &Block) -> &'static str {
    match block {
        Block::Text { .. } => "text",
        Block::Annotated { .. } => "annotated",
        Block::Thinking { .. } => "thinking",
        Block::Image { .. } => "image",
        Block::Attachment(_) => "attachment",
        Block::ToolCall(_) => "tool_call",
        Block::ToolResult(_) => "tool_result",
        Block::Notice { .. } => "notice",
        Block::Native { .. } => "native",
        Block::Cut { .. } => "cut",
    }
}

pub(super) fn drop_blank(messages: &mut [Message], repairs: &mut Vec<Repair>) {
    let mut retain = |blocks: &mut Vec<Block>| {
        blocks.retain(|block| {
            let blank = block.is_blank();
            if blank {
                repairs.push(Repair::DroppedBlank);
            }
            !blank
        });
    };
    for message in messages {
        retain(&mut message.blocks);
        for block in &mut message.blocks {
            if let Block::ToolResult(result) = block {
                retain(&mut result.blocks);
            }
        }
    }
}

pub(super) fn fill_empty_results(messages: &mut [Message], repairs: &mut Vec<Repair>) {
    for block in messages.iter_mut().flat_map(|m| &mut m.blocks) {
        if let Block::ToolResult(result) = block
            && result.blocks.is_empty()
        {
            result.blocks.push(Block::text("(no output)"));
            repairs.push(Repair::FilledEmptyResult {
                call: result.call.clone(),
            });
        }
    }
}

pub(super) fn clean_tool_names(messages: &mut [Message], repairs: &mut Vec<Repair>) {
    for block in messages.iter_mut().flat_map(|m| &mut m.blocks) {
        let Block::ToolCall(call) = block else {
            continue;
        };
        let clean = clean_name(&call.name);
        if clean != call.name {
            repairs.push(Repair::CleanedToolName {
                from: std::mem::replace(&mut call.name, clean.clone()),
                to: clean,
            });
        }
    }
}

/// Turns a name into one that every provider accepts for a function: 1 to 64 characters of `[a-zA-Z0-9_-]`, starting
/// with a letter or `_`.
fn clean_name(name: &str) -> String {
    let clean = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let mut cleaned: String = name.chars().take(64).map(clean).collect();
    if !cleaned.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        cleaned.insert(0, '_');
        cleaned.truncate(64);
    }
    cleaned
}

/// Providers refuse thinking at the end of a reply, because it must precede something.
pub(super) fn drop_trailing_thinking(messages: &mut [Message], repairs: &mut Vec<Repair>) {
    for message in messages {
        while message.blocks.last().is_some_and(Block::is_sealed_thinking) {
            let mut words = Vec::new();
            if let Some(block) = message.blocks.pop() {
                block.words(&mut words);
            }
            repairs.push(Repair::DroppedTrailingThinking { words });
        }
    }
}
