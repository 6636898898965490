//! Makes parts of a message fit into an event.

use super::Left;
use crate::message::{Arguments, Block, ToolCall};

/// The bytes of one message or one result. An event may have twice as many.
pub(super) const MESSAGE_BYTES: usize = 12 * 1024 * 1024;
/// The bytes of one text.
const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// What a part costs besides its text, so that the number of parts has a limit too.
const PART_BYTES: usize = 64;
pub(super) const CUT: &str = "\n[cut by the import: the text is too long]";
/// The longest name of a tool that all providers accept.
const TOOL_NAME: usize = 64;

/// What is left of the size of one message.
pub(super) struct Room(usize);

impl Room {
    pub(super) const fn new() -> Self {
        Self(MESSAGE_BYTES)
    }

    /// The block as it fits; none if it does not fit at all. The reason says what was lost.
    pub(super) fn fit(&mut self, block: Block) -> (Option<Block>, Option<Left>) {
        let own = block.as_call().map_or(0, |call| {
            call.id.as_str().len() + call.name.len().min(TOOL_NAME)
        });
        let has_room = self.take(PART_BYTES + own);
        match block {
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall(_) if !has_room => {
                (None, Some(Left::Cut))
            }
            Block::Text { text } => {
                let (text, left) = self.text(text);
                (Some(Block::Text { text }), left)
            }
            Block::Thinking { text, .. } => {
                let (text, left) = self.text(text);
                let signature = None;
                (Some(Block::Thinking { text, signature }), left)
            }
            Block::Image { media_type, data } => match has_room && self.take(data.len()) {
                true => (Some(Block::Image { media_type, data }), None),
                false => (None, Some(Left::Image)),
            },
            Block::ToolCall(call) => {
                let (call, left) = self.call(call);
                (Some(Block::ToolCall(call)), left)
            }
            _ => (None, Some(Left::Unknown)),
        }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.0;
        if fits {
            self.0 -= bytes;
        }
        fits
    }

    fn text(&mut self, mut text: String) -> (String, Option<Left>) {
        let most = TEXT_BYTES.min(self.0);
        if text.len() <= most {
            self.0 -= text.len();
            return (text, None);
        }
        let end = (0..=most.saturating_sub(CUT.len())).rev();
        let end = end.into_iter().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str(CUT);
        self.0 = self.0.saturating_sub(text.len());
        (text, Some(Left::Cut))
    }

    fn call(&mut self, call: ToolCall) -> (ToolCall, Option<Left>) {
        let written = match &call.arguments {
            Arguments::Object(map) => serde_json::to_string(map).unwrap_or_default(),
            Arguments::Malformed(raw) => raw.clone(),
        };
        let (text, left) = self.text(written);
        let arguments = match left {
            Some(_) => Arguments::Malformed(text),
            None => call.arguments,
        };
        let call = ToolCall {
            id: call.id,
            name: tool_name(&call.name),
            arguments,
            signature: None,
        };
        (call, left)
    }
}

/// A name that every provider accepts.
fn tool_name(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = name.chars().take(TOOL_NAME);
    let name: String = name.map(|c| if is_good(c) { c } else { '_' }).collect();
    // Some providers accept no digit or dash at the beginning.
    match name.chars().next() {
        Some(c) if c.is_ascii_alphabetic() || c == '_' => name,
        Some(_) => format!("_{}", name.get(1..).unwrap_or_default()),
        None => "unnamed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::{call, image};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut room = Room::new();
        let (block, left) = room.fit(Block::text("ü".repeat(TEXT_BYTES)));
        assert_eq!(left, Some(Left::Cut));
        let Some(Block::Text { text }) = block else {
            panic!("no text");
        };
        assert!(text.len() <= TEXT_BYTES && text.ends_with(CUT));
    }

    #[test]
    fn one_message_has_an_end() {
        let mut room = Room::new();
        let texts = (0..20).map(|_| room.fit(Block::text("x".repeat(TEXT_BYTES))));
        let sizes = texts.map(|(block, _)| match block {
            Some(Block::Text { text }) => text.len(),
            _ => 0,
        });
        assert!(sizes.sum::<usize>() <= MESSAGE_BYTES + 20 * CUT.len());
    }

    #[test]
    fn many_small_parts_have_an_end_too() {
        let mut room = Room::new();
        let most = MESSAGE_BYTES / PART_BYTES;
        let kept = (0..most + 10).filter(|_| room.fit(Block::text("")).0.is_some());
        assert_eq!(kept.count(), most);
        let parts = [
            (Block::text("x"), Left::Cut),
            (call("id", "shell", &json!({})), Left::Cut),
            (image(Some("image/png"), Some("AA==")).unwrap(), Left::Image),
        ];
        for (part, left) in parts {
            assert_eq!(room.fit(part), (None, Some(left)));
        }
    }

    #[test]
    fn the_id_of_a_call_counts() {
        let mut room = Room::new();
        let long = "x".repeat(MESSAGE_BYTES);
        let (part, left) = room.fit(call(&long, "shell", &json!({})));
        assert_eq!((part, left), (None, Some(Left::Cut)));
        let (part, left) = room.fit(call("id", "shell", &json!({})));
        assert!(part.is_some() && left.is_none(), "the rest still fits");
    }

    #[test]
    fn tool_names_are_what_providers_accept() {
        for (given, name) in [
            ("Bash", "Bash"),
            ("mcp.files/read", "mcp_files_read"),
            ("1st", "_st"),
            ("", "unnamed"),
        ] {
            assert_eq!(tool_name(given), name);
        }
        assert_eq!(tool_name(&"ü".repeat(100)).len(), TOOL_NAME);
    }
}
