//! The contents of messages: blocks in the order in which they arrived.

mod attached;

pub use attached::{AttachedFile, Attachment, AttachmentInfo, FileKind, decoded_bytes};

use crate::id::CallId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A provider's format of requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    AnthropicMessages,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Wire {
    pub const ALL: [Self; 4] = [
        Self::AnthropicMessages,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
    ];
}

/// The role of a message in a request. A notice of agentd is sent in the user's role, in its own block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

impl Message {
    pub fn user(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::User,
            blocks,
        }
    }

    pub fn assistant(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::Assistant,
            blocks,
        }
    }

    /// The tool calls in this message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(Block::as_call)
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// Text with data that the provider attached (citations, a signature), kept unchanged. Other providers are sent
    /// only the text.
    Annotated {
        text: String,
        wire: Wire,
        item: Value,
    },
    Thinking {
        text: String,
        /// Without a signature, thinking is kept in the history and never sent back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Signature>,
    },
    Image {
        media_type: String,
        /// Base64, as it arrived.
        data: String,
    },
    /// A file of the user. [`crate::request`] turns it into what a provider accepts.
    Attachment(Attachment),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// A message of agentd to the model, never of the user.
    Notice {
        text: String,
    },
    /// A provider's block that has no counterpart here. It is kept and sent back unchanged.
    Native {
        wire: Wire,
        item: Value,
    },
    /// The part of a block that had arrived when the reply was cut off and that cannot be sent back: unsigned
    /// thinking, an incomplete call. Kept for users to read.
    Cut {
        what: CutBlock,
        text: String,
    },
}

/// What kind of block was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutBlock {
    Thinking,
    ToolCall,
}

/// A provider's signature of its model's thinking. Only that provider accepts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub wire: Wire,
    pub value: String,
    /// The provider's id of the item, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub arguments: Arguments,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// The arguments of a call: an object, or what the model wrote instead of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    Object(Map<String, Value>),
    Malformed(String),
}

impl Arguments {
    /// Reads what the model streamed. Empty text means no arguments.
    pub fn parse(raw: &str) -> Self {
        if raw.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str::<Value>(raw) {
            Ok(Value::Object(map)) => Self::Object(map),
            _ => Self::Malformed(raw.to_owned()),
        }
    }

    /// The object to send back. Providers accept only objects, even for malformed arguments.
    pub fn to_object(&self) -> Map<String, Value> {
        match self {
            Self::Object(map) => map.clone(),
            Self::Malformed(raw) => {
                let mut map = Map::new();
                map.insert("malformed_arguments".into(), Value::String(raw.clone()));
                map
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: CallId,
    pub outcome: CallOutcome,
    pub blocks: Vec<Block>,
}

/// How a call ended. Every outcome except `Ok` is sent to the model as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Ok,
    Error,
    /// Ended by an interrupt, a reset or a stop.
    Interrupted,
    /// Refused by a rule, a hook or the user.
    Denied,
    /// A crash came first. The call had no effect.
    NotStarted,
    /// A crash came while it ran. Whether it had an effect is unknown.
    Unknown,
}

impl CallOutcome {
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    pub const fn as_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    pub const fn as_attachment(&self) -> Option<&Attachment> {
        match self {
            Self::Attachment(attachment) => Some(attachment),
            _ => None,
        }
    }

    pub const fn as_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(result) => Some(result),
            _ => None,
        }
    }

    /// Thinking that can be sent back, readable or not.
    pub fn is_sealed_thinking(&self) -> bool {
        match self {
            Self::Thinking { signature, .. } => signature.is_some(),
            Self::Native { item, .. } => {
                item.get("type").and_then(Value::as_str) == Some("redacted_thinking")
            }
            _ => false,
        }
    }

    /// Empty text. Every provider rejects it, and nothing is lost without it.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text { text } | Self::Annotated { text, .. } | Self::Notice { text } => {
                text.trim().is_empty()
            }
            _ => false,
        }
    }

    /// The text in this block that a user could search for or read.
    pub fn words(&self, out: &mut Vec<String>) {
        match self {
            Self::Text { text }
            | Self::Annotated { text, .. }
            | Self::Thinking { text, .. }
            | Self::Notice { text }
            | Self::Cut { text, .. } => out.push(text.clone()),
            Self::ToolCall(call) => {
                out.push(call.name.clone());
                match &call.arguments {
                    Arguments::Object(map) => strings_in_map(map, out),
                    Arguments::Malformed(raw) => out.push(raw.clone()),
                }
            }
            Self::ToolResult(result) => {
                for block in &result.blocks {
                    block.words(out);
                }
            }
            Self::Attachment(attachment) => {
                out.push(attachment.name.clone());
                if let AttachedFile::Text { text } = &attachment.file {
                    out.push(text.clone());
                }
            }
            Self::Native { item, .. } => strings_in(item, out),
            Self::Image { .. } => {}
        }
    }
}

fn strings_in(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings_in(item, out)),
        Value::Object(map) => strings_in_map(map, out),
        _ => {}
    }
}

fn strings_in_map(map: &Map<String, Value>, out: &mut Vec<String>) {
    for value in map.values() {
        strings_in(value, out);
    }
}
