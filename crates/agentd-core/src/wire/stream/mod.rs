//! A provider's stream, event by event, as deltas. Pure: the driver supplies the bytes.
//!
//! A stream that ends without its provider's final event was cut off, whatever has arrived.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

#[cfg(test)]
mod tests;

use crate::draft::{Change, Delta};
use crate::event::{FailureClass, StopReason};
use crate::message::Wire;
use crate::usage::Usage;
use serde_json::Value;

/// Why a stream cannot be used any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Broken {
    pub class: FailureClass,
    /// For users.
    pub detail: String,
}

impl Broken {
    fn malformed(detail: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Malformed,
            detail: detail.into(),
        }
    }

    /// The provider reports this error.
    fn reported(class: FailureClass, error: &Value) -> Self {
        let detail = text(error, "message").unwrap_or("the provider failed");
        Self {
            class,
            detail: detail.to_owned(),
        }
    }
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub stop: StopReason,
    pub usage: Option<Usage>,
    /// The provider's id of the reply.
    pub provider_request: Option<String>,
}

/// Reads one reply.
pub struct Decoder {
    format: Format,
}

enum Format {
    Anthropic(anthropic::Decoder),
    OpenaiChat(openai_chat::Decoder),
    OpenaiResponses(openai_responses::Decoder),
    Gemini(gemini::Decoder),
}

impl Decoder {
    pub fn new(wire: Wire) -> Self {
        Self {
            format: match wire {
                Wire::AnthropicMessages => Format::Anthropic(Default::default()),
                Wire::OpenaiChat => Format::OpenaiChat(Default::default()),
                Wire::OpenaiResponses => Format::OpenaiResponses(Default::default()),
                Wire::Gemini => Format::Gemini(Default::default()),
            },
        }
    }

    /// Processes the data of one server-sent event.
    pub fn event(&mut self, data: &str) -> Result<Vec<Delta>, Broken> {
        if data.trim() == "[DONE]" {
            // Some servers end every format with it. Only chat has no other end.
            if let Format::OpenaiChat(decoder) = &mut self.format {
                decoder.done();
            }
            return Ok(Vec::new());
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|error| Broken::malformed(format!("the stream is not JSON: {error}")))?;
        let mut out = Vec::new();
        match &mut self.format {
            Format::Anthropic(decoder) => decoder.event(value, &mut out),
            Format::OpenaiChat(decoder) => decoder.event(&value, &mut out),
            Format::OpenaiResponses(decoder) => decoder.event(&value, &mut out),
            Format::Gemini(decoder) => decoder.event(&value, &mut out),
        }?;
        Ok(out)
    }

    /// The stream has ended.
    pub fn finish(self) -> Result<End, Broken> {
        let end = match self.format {
            Format::Anthropic(decoder) => decoder.finish(),
            Format::OpenaiChat(decoder) => decoder.finish(),
            Format::OpenaiResponses(decoder) => decoder.finish(),
            Format::Gemini(decoder) => decoder.finish(),
        };
        end.ok_or_else(|| Broken {
            class: FailureClass::Dropped,
            detail: "the stream ended in the middle of the reply".to_owned(),
        })
    }
}

/// Numbers the parts of a reply, and remembers which text is still being written.
#[derive(Default)]
struct Parts {
    next: usize,
    open: Option<(usize, Open)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

impl Parts {
    /// Begins a new part, and closes the open one.
    fn begin(&mut self) -> usize {
        self.open = None;
        let part = self.next;
        self.next += 1;
        part
    }

    /// The open part for text of this kind, or a new part if none is open.
    fn running(&mut self, kind: Open) -> usize {
        match self.open {
            Some((part, open)) if open == kind => part,
            _ => {
                let part = self.begin();
                self.open = Some((part, kind));
                part
            }
        }
    }
}

fn delta(part: usize, change: Change) -> Delta {
    Delta { part, change }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}
