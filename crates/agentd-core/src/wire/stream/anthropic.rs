//! Anthropic Messages: blocks begin, grow and stop by index.

use super::{Broken, End, delta, number, text};
use crate::draft::{Change, Delta};
use crate::event::{FailureClass, StopReason};
use crate::id::CallId;
use crate::message::{Block, Signature, Wire};
use crate::usage::Usage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Decoder {
    /// By the provider's index.
    blocks: BTreeMap<u64, OpenBlock>,
    parts: usize,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    id: Option<String>,
    stopped: bool,
}

struct OpenBlock {
    part: usize,
    kind: Kind,
}

enum Kind {
    Text {
        text: String,
        citations: Vec<Value>,
    },
    Thinking,
    Call,
    /// A block that has no counterpart here, assembled as it arrives.
    Native {
        item: Value,
        json: String,
    },
}

impl Decoder {
    pub fn event(&mut self, event: Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        match text(&event, "type").unwrap_or_default() {
            "message_start" => {
                let message = &event["message"];
                self.id = text(message, "id").map(str::to_owned);
                self.count(&message["usage"]);
            }
            "content_block_start" => self.start(&event, out),
            "content_block_delta" => self.grow(&event, out)?,
            "content_block_stop" => self.stop(number(&event, "index"), out),
            "message_delta" => {
                self.count(&event["usage"]);
                self.stop = text(&event["delta"], "stop_reason").map(stop_reason);
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(broken(&event["error"])),
            // Pings, and events that may be added later.
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let block = &event["content_block"];
        let part = self.parts;
        let kind = match text(block, "type").unwrap_or_default() {
            "text" => {
                let text = text(block, "text").unwrap_or_default().to_owned();
                out.push(delta(part, Change::Text { text: text.clone() }));
                let citations = Vec::new();
                Kind::Text { text, citations }
            }
            "thinking" => {
                let text = text(block, "thinking").unwrap_or_default().to_owned();
                out.push(delta(part, Change::Thinking { text }));
                Kind::Thinking
            }
            "tool_use" => {
                let id = CallId::new(text(block, "id").unwrap_or_default());
                let name = text(block, "name").unwrap_or_default().to_owned();
                out.push(delta(part, Change::Call { id, name }));
                Kind::Call
            }
            _ => Kind::Native {
                item: block.clone(),
                json: String::new(),
            },
        };
        self.parts += 1;
        let index = number(event, "index");
        self.blocks.insert(index, OpenBlock { part, kind });
    }

    fn grow(&mut self, event: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let index = number(event, "index");
        let block = self
            .blocks
            .get_mut(&index)
            .ok_or_else(|| Broken::malformed(format!("delta for unknown block {index}")))?;
        let part = block.part;
        let change = &event["delta"];
        let piece = |key| text(change, key).unwrap_or_default().to_owned();
        match (text(change, "type").unwrap_or_default(), &mut block.kind) {
            ("text_delta", Kind::Text { text, .. }) => {
                let more = piece("text");
                text.push_str(&more);
                out.push(delta(part, Change::Text { text: more }));
            }
            ("citations_delta", Kind::Text { citations, .. }) => {
                citations.push(change["citation"].clone());
            }
            ("thinking_delta", Kind::Thinking) => {
                let text = piece("thinking");
                out.push(delta(part, Change::Thinking { text }));
            }
            ("signature_delta", Kind::Thinking) => {
                let signature = Signature {
                    wire: Wire::AnthropicMessages,
                    value: piece("signature"),
                    id: None,
                };
                out.push(delta(part, Change::Signature { signature }));
            }
            ("input_json_delta", Kind::Call) => {
                let json = piece("partial_json");
                out.push(delta(part, Change::Arguments { json }));
            }
            ("input_json_delta", Kind::Native { json, .. }) => {
                json.push_str(&piece("partial_json"))
            }
            // A delta of an unknown kind is kept with its block.
            (_, Kind::Native { item, .. }) => {
                if let Some(item) = item.as_object_mut() {
                    let grown = item.entry("deltas").or_insert_with(|| json!([]));
                    if let Some(grown) = grown.as_array_mut() {
                        grown.push(change.clone());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, index: u64, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.remove(&index) else {
            return;
        };
        let wire = Wire::AnthropicMessages;
        let change = match block.kind {
            Kind::Native { mut item, json } => {
                if let Ok(input) = serde_json::from_str::<Value>(&json) {
                    item["input"] = input;
                }
                let block = Block::Native { wire, item };
                Change::Whole { block }
            }
            Kind::Text { text, citations } if !citations.is_empty() => Change::Annotated {
                wire,
                item: json!({"type": "text", "text": text, "citations": citations}),
            },
            _ => return,
        };
        out.push(delta(block.part, change));
    }

    /// The counts are running totals; a later count replaces an earlier one.
    fn count(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let known = self.usage.get_or_insert_default();
        let newer = |key: &str, old: u64| usage.get(key).and_then(Value::as_u64).unwrap_or(old);
        *known = Usage {
            input_tokens: newer("input_tokens", known.input_tokens),
            output_tokens: newer("output_tokens", known.output_tokens),
            cache_read_tokens: newer("cache_read_input_tokens", known.cache_read_tokens),
            cache_write_tokens: newer("cache_creation_input_tokens", known.cache_write_tokens),
        };
    }

    pub fn finish(self) -> Option<End> {
        self.stopped.then_some(End {
            stop: self.stop.unwrap_or(StopReason::Other),
            usage: self.usage,
            provider_request: self.id,
        })
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Paused,
        _ => StopReason::Other,
    }
}

fn broken(error: &Value) -> Broken {
    let class = match text(error, "type").unwrap_or_default() {
        "overloaded_error" => FailureClass::Overloaded,
        "rate_limit_error" => FailureClass::RateLimited,
        "authentication_error" | "permission_error" => FailureClass::Unauthorized,
        "invalid_request_error" => FailureClass::Rejected,
        _ => FailureClass::Unavailable,
    };
    Broken::reported(class, error)
}
