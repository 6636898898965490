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
pub(super) const LONGEST_ARGUMENTS: usize = 256 * 1024;
/// How much of a call's result is recorded.
const LONGEST_RESULT: usize = 256 * 1024;
const LONGEST_TITLE: usize = 1024;
pub(super) const LONGEST_NAME: usize = 128;
/// How many values a message may have. In memory, each is much larger than in JSON.
const MOST_VALUES: usize = 50_000;
/// The memory of a value without its texts, and of a field of an object.
const VALUE_BYTES: usize = 80;
const FIELD_BYTES: usize = 160;
/// The memory of an event without its contents.
const EVENT_BYTES: usize = 256;
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
            name: cut(&name, LONGEST_NAME),
            arguments: arguments(given),
            is_pending,
        },
        ChildEvent::CallChanged {
            id,
            name,
            arguments: given,
        } => ChildEvent::CallChanged {
            id,
            name: cut(&name, LONGEST_NAME),
            arguments: arguments(given),
        },
        ChildEvent::Asks {
            id,
            name,
            arguments: given,
            question,
        } => ChildEvent::Asks {
            id,
            name: cut(&name, LONGEST_NAME),
            arguments: arguments(given),
            question,
        },
        ChildEvent::Elicits { id, mut question } => {
            question.message = cut(&question.message, LONGEST_MESSAGE);
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
    let own: usize = match event {
        ChildEvent::Text(text) | ChildEvent::Thinking(text) => text.len(),
        ChildEvent::Call { id, arguments, .. }
        | ChildEvent::CallChanged { id, arguments, .. }
        | ChildEvent::Asks { id, arguments, .. } => id.len() + fields_memory(arguments),
        ChildEvent::CallEnded { id, blocks, .. } => {
            id.len() + blocks.iter().map(block_bytes).sum::<usize>()
        }
        ChildEvent::CallBegan { id } => id.len(),
        ChildEvent::Elicits { id, question } => {
            id.len() + question.message.len() + question.form.as_ref().map_or(0, memory)
        }
        ChildEvent::Spent { .. } | ChildEvent::Over(_) => 0,
    };
    own + EVENT_BYTES
}

pub(super) fn arguments(given: Map<String, Value>) -> Map<String, Value> {
    let length: usize = given.iter().map(|(key, it)| key.len() + bytes(it)).sum();
    if length <= LONGEST_ARGUMENTS {
        return given;
    }
    let left = format!("{length} bytes of arguments are not recorded, because they are too long");
    let mut kept = Map::from_iter([(NOT_RECORDED.to_owned(), json!(left))]);
    if let Some(title) = given.get("title").and_then(Value::as_str) {
        let title = cut(title, LONGEST_TITLE);
        kept.insert("title".to_owned(), json!(title));
    }
    kept
}

pub(super) fn blocks(given: impl IntoIterator<Item = Block>) -> Vec<Block> {
    let mut room = LONGEST_RESULT;
    let mut kept = Vec::new();
    for block in given {
        let length = block_bytes(&block);
        match block {
            _ if room == 0 => break,
            Block::Text { text } if length > room => {
                let text = cut(&text, room);
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

pub(super) fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image { data, .. } => data.len(),
        other => crate::request::estimate_bytes(other),
    }
    .max(1)
}

/// Whether a line of JSON has more values than agentd keeps in memory. Reads each byte once, and allocates nothing.
pub fn has_too_many_values(line: &[u8]) -> bool {
    let (mut values, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in line {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (true, b'"') => in_text = false,
            (false, b'"') => in_text = true,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

/// How many bytes a text has in JSON.
pub fn json_bytes(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..=0x1f => 6,
        _ => 1,
    });
    bytes.sum()
}

/// About how much memory the fields of an object use.
pub(super) fn fields_memory(map: &Map<String, Value>) -> usize {
    let fields = map.iter();
    fields
        .map(|(key, it)| FIELD_BYTES + key.len() + memory(it))
        .sum()
}

/// About how much memory a value uses.
fn memory(value: &Value) -> usize {
    match value {
        Value::String(text) => VALUE_BYTES + text.len(),
        Value::Array(items) => VALUE_BYTES + items.iter().map(memory).sum::<usize>(),
        Value::Object(map) => VALUE_BYTES + fields_memory(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE_BYTES,
    }
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

pub(super) fn cut(text: &str, longest: usize) -> String {
    text[..text.floor_char_boundary(longest)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_found_without_reading_them() {
        let numbers = format!("[{}1]", "1,".repeat(MOST_VALUES));
        assert!(has_too_many_values(numbers.as_bytes()));
        let text = json!({"text": format!("\"{}", "[,{".repeat(MOST_VALUES))}).to_string();
        assert!(!has_too_many_values(text.as_bytes()));
        let lists = "[".repeat(MOST_VALUES + 1);
        assert!(has_too_many_values(lists.as_bytes()));
    }

    #[test]
    fn a_text_is_as_long_as_in_json() {
        for text in ["plain", "a\nb\tc\r", "\"\\\u{1}\u{1f}", "ü€"] {
            assert_eq!(
                json_bytes(text) + 2,
                json!(text).to_string().len(),
                "{text:?}"
            );
        }
    }
}
