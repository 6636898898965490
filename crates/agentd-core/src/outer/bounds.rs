//! How much of what a child says is recorded. A child may be hostile, or out of order.

use super::ChildEvent;
use crate::message::Block;
use serde_json::{Map, Value, json};

/// The longest id of a call or a question. Calls with longer ones are ignored, and their questions are refused.
pub const LONGEST_ID: usize = 4096;
/// The argument that replaces all others if they are too long to be recorded. Neither the rules nor the user can judge such a
/// call.
pub const NOT_RECORDED: &str = "not_recorded";
/// How much of a call's arguments is recorded, in bytes of JSON.
const LONGEST_ARGUMENTS: usize = 256 * 1024;
/// How much of a call's result is recorded.
const LONGEST_RESULT: usize = 256 * 1024;
const LONGEST_TITLE: usize = 1024;
const LONGEST_NAME: usize = 128;
/// How much of a question's text is shown.
const LONGEST_MESSAGE: usize = 2000;

/// The event, with everything in it that is too long shortened and marked as such. Texts of the answer are limited by
/// the turn instead.
pub fn bounded(event: ChildEvent) -> ChildEvent {
    match event {
        ChildEvent::Call {
            id,
            name,
            arguments: given,
            is_pending,
        } => ChildEvent::Call {
            id,
            name: cut(name, LONGEST_NAME),
            arguments: arguments(given),
            is_pending,
        },
        ChildEvent::CallChanged {
            id,
            name,
            arguments: given,
        } => ChildEvent::CallChanged {
            id,
            name: cut(name, LONGEST_NAME),
            arguments: arguments(given),
        },
        ChildEvent::Asks {
            id,
            name,
            arguments: given,
            question,
        } => ChildEvent::Asks {
            id,
            name: cut(name, LONGEST_NAME),
            arguments: arguments(given),
            question,
        },
        ChildEvent::Elicits { id, mut question } => {
            question.message = cut(question.message, LONGEST_MESSAGE);
            ChildEvent::Elicits { id, question }
        }
        ChildEvent::CallEnded {
            id,
            outcome,
            blocks: given,
        } => ChildEvent::CallEnded {
            id,
            outcome,
            blocks: blocks(given),
        },
        other => other,
    }
}

/// About how much memory an event uses, in bytes.
pub fn size(event: &ChildEvent) -> usize {
    let fields = |map: &Map<String, Value>| -> usize {
        map.iter().map(|(key, it)| key.len() + bytes(it)).sum()
    };
    let own: usize = match event {
        ChildEvent::Text(text) | ChildEvent::Thinking(text) => text.len(),
        ChildEvent::Call { id, arguments, .. }
        | ChildEvent::CallChanged { id, arguments, .. }
        | ChildEvent::Asks { id, arguments, .. } => id.len() + fields(arguments),
        ChildEvent::CallEnded { id, blocks, .. } => {
            id.len() + blocks.iter().map(block_bytes).sum::<usize>()
        }
        ChildEvent::CallBegan { id } => id.len(),
        ChildEvent::Elicits { id, question } => {
            id.len() + question.message.len() + question.form.as_ref().map_or(0, bytes)
        }
        ChildEvent::Spent { .. } | ChildEvent::Over(_) => 0,
    };
    own + 64
}

pub(super) fn arguments(given: Map<String, Value>) -> Map<String, Value> {
    let length: usize = given.iter().map(|(key, it)| key.len() + bytes(it)).sum();
    if length <= LONGEST_ARGUMENTS {
        return given;
    }
    let left = format!("{length} bytes of arguments are not recorded, because they are too long");
    let mut kept = Map::from_iter([(NOT_RECORDED.to_owned(), json!(left))]);
    if let Some(title) = given.get("title").and_then(Value::as_str) {
        let title = cut(title.to_owned(), LONGEST_TITLE);
        kept.insert("title".to_owned(), json!(title));
    }
    kept
}

fn blocks(given: Vec<Block>) -> Vec<Block> {
    let mut room = LONGEST_RESULT;
    let mut kept = Vec::new();
    for block in given {
        let length = block_bytes(&block);
        match block {
            _ if room == 0 => break,
            Block::Text { text } if length > room => {
                let text = cut(text, room);
                kept.push(Block::text(format!(
                    "{text}\n[agentd: the rest was dropped]"
                )));
                room = 0;
            }
            _ if length > room => {
                kept.push(Block::text("[agentd: the rest was dropped]"));
                room = 0;
            }
            block => {
                room -= length;
                kept.push(block);
            }
        }
    }
    kept
}

fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image { data, .. } => data.len(),
        other => crate::request::estimate_bytes(other),
    }
    .max(1)
}

/// The bytes of the texts in a value, and a little for everything else.
fn bytes(value: &Value) -> usize {
    8 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(map) => map.iter().map(|(key, it)| key.len() + bytes(it)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

pub(super) fn cut(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}
