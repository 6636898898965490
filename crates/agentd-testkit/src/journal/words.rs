//! Words that are unique within a journal, so that a test can search for each.

use agentd_core::id::CallId;
use agentd_core::message::{Arguments, AttachedFile, Attachment, Block, Signature, ToolCall, Wire};
use serde_json::{Value, json};
use uuid::Uuid;

/// A deterministic source of ids and words.
#[derive(Clone, Debug, Default)]
pub struct Source {
    counter: u128,
}

impl Source {
    pub fn uuid(&mut self) -> Uuid {
        self.counter += 1;
        // Version 7 by its bits, in order by its number.
        Uuid::from_u128((0x0190_0000_0000_7000_8000_0000_0000_0000) | self.counter)
    }

    /// A word that was not used before. Its marks ensure that no word is a part of another.
    pub fn word(&mut self) -> String {
        self.counter += 1;
        format!("w{}w", self.counter)
    }

    pub fn text(&mut self) -> Block {
        Block::text(self.word())
    }

    pub fn image(&mut self) -> Block {
        Block::Image {
            media_type: "image/png".into(),
            data: "iVBORw0KGgo=".into(),
        }
    }

    /// A file of each kind in turn.
    pub fn attachment(&mut self) -> Block {
        let name = format!("{}.file", self.word());
        let file = match self.counter % 4 {
            0 => AttachedFile::Text { text: self.word() },
            1 => AttachedFile::Pdf {
                pages: 1,
                data: "JVBERi0xLjQ=".into(),
            },
            // One of the four providers does not accept it.
            2 => AttachedFile::Image {
                media_type: "image/gif".into(),
                data: "R0lGODlhAQABAAAAADs=".into(),
            },
            _ => AttachedFile::Image {
                media_type: "image/png".into(),
                data: "iVBORw0KGgo=".into(),
            },
        };
        Block::Attachment(Attachment { name, file })
    }

    pub fn signature(&mut self, wire: Wire) -> Signature {
        Signature {
            wire,
            value: "c2lnbmVk".into(),
            id: (wire == Wire::OpenaiResponses).then(|| format!("rs_{}", self.word())),
        }
    }

    pub fn call(&mut self, id: &str) -> ToolCall {
        let mut arguments = serde_json::Map::new();
        arguments.insert("command".into(), Value::String(self.word()));
        ToolCall {
            id: CallId::new(id),
            name: "shell".into(),
            arguments: Arguments::Object(arguments),
            signature: None,
        }
    }

    /// A provider-specific block that this provider accepts in a later request.
    pub fn native(&mut self, wire: Wire) -> Block {
        let word = self.word();
        let item = match wire {
            Wire::AnthropicMessages => json!({"type": "redacted_thinking", "data": word}),
            Wire::OpenaiChat => json!({"type": "refusal", "refusal": word}),
            Wire::OpenaiResponses => json!({
                "type": "message", "id": format!("msg_{word}"), "role": "assistant",
                "status": "completed", "content": [{"type": "refusal", "refusal": word}],
            }),
            Wire::Gemini => json!({"executableCode": {"language": "PYTHON", "code": word}}),
        };
        Block::Native { wire, item }
    }
}
