//! What is said: blocks in the order they came.

use crate::id::CallId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A provider's way of writing requests and replies.
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

/// Who speaks in a request. A notice of ours travels in the user's role, in a block of its own.
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

/// One piece of a message, at its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// Text with what the provider put beside it (citations, a signature), kept as it came. Another
    /// provider is sent the text alone.
    Annotated {
        text: String,
        wire: Wire,
        item: Value,
    },
    Thinking {
        text: String,
        /// Without it, thinking is kept in the history and never sent back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Signature>,
    },
    Image {
        media_type: String,
        /// Base64, as it came.
        data: String,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Something agentd tells the model; never the user's words.
    Notice {
        text: String,
    },
    /// A block of a provider that has no counterpart here, kept as it came and sent back as it came.
    Native {
        wire: Wire,
        item: Value,
    },
    /// What had arrived of a block when the reply was cut off and cannot be sent back: unsigned
    /// thinking, a half-written call. Kept for people to read.
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

/// A provider's seal on what its model thought. Good only for the provider that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub wire: Wire,
    pub value: String,
    /// The provider's id of the item, where it has one.
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

/// A call's arguments: an object, or what the model wrote where an object should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    Object(Map<String, Value>),
    Malformed(String),
}

impl Arguments {
    /// Reads what the model streamed. Nothing at all means no arguments.
    pub fn parse(raw: &str) -> Self {
        if raw.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str::<Value>(raw) {
            Ok(Value::Object(map)) => Self::Object(map),
            _ => Self::Malformed(raw.to_owned()),
        }
    }

    /// The object to send back: providers accept nothing else, even for what was malformed.
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

/// How a call ended. Everything but `Ok` is told to the model as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Ok,
    Error,
    /// Ended by an interrupt, a reset or a stop.
    Interrupted,
    /// Refused by a rule, a hook or the user.
    Denied,
    /// A crash came first; it has had no effect.
    NotStarted,
    /// A crash came in between; whether it had an effect cannot be known.
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

    /// Text with nothing in it: every provider rejects it, and no reader misses it.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text { text } | Self::Annotated { text, .. } | Self::Notice { text } => {
                text.trim().is_empty()
            }
            _ => false,
        }
    }

    /// The words a person could search for or read in this block.
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
