//! OpenAI Responses: output items begin, grow and are done by index.

use super::{Broken, End, delta, number, text};
use crate::draft::{Change, Delta};
use crate::event::{FailureClass, StopReason};
use crate::id::CallId;
use crate::message::{Block, Signature, Wire};
use crate::usage::Usage;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const WIRE: Wire = Wire::OpenaiResponses;

#[derive(Default)]
pub struct Decoder {
    /// The part of each item, or of each piece of a message's content.
    parts: BTreeMap<(u64, u64), usize>,
    /// The pieces of content that are streamed text.
    texts: BTreeSet<(u64, u64)>,
    next: usize,
    called: bool,
    end: Option<End>,
}

impl Decoder {
    pub fn event(&mut self, event: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let output = number(event, "output_index");
        let piece = || text(event, "delta").unwrap_or_default().to_owned();
        match text(event, "type").unwrap_or_default() {
            "response.output_item.added" => self.added(output, &event["item"], out),
            "response.output_text.delta" => {
                let content = number(event, "content_index");
                self.texts.insert((output, content));
                let part = self.part(output, content);
                out.push(delta(part, Change::Text { text: piece() }));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let part = self.part(output, 0);
                out.push(delta(part, Change::Thinking { text: piece() }));
            }
            "response.reasoning_summary_part.added" if number(event, "summary_index") > 0 => {
                let part = self.part(output, 0);
                let text = "\n\n".to_owned();
                out.push(delta(part, Change::Thinking { text }));
            }
            "response.function_call_arguments.delta" => {
                let part = self.part(output, 0);
                out.push(delta(part, Change::Arguments { json: piece() }));
            }
            "response.output_item.done" => self.done(output, &event["item"], out),
            "response.completed" => self.completed(&event["response"], None),
            "response.incomplete" => {
                let response = &event["response"];
                let reason = text(&response["incomplete_details"], "reason");
                let stop = match reason.unwrap_or_default() {
                    "max_output_tokens" => StopReason::MaxTokens,
                    "content_filter" => StopReason::Refusal,
                    _ => StopReason::Other,
                };
                self.completed(response, Some(stop));
            }
            "response.failed" => return Err(broken(&event["response"]["error"])),
            "error" => return Err(broken(event)),
            _ => {}
        }
        Ok(())
    }

    fn part(&mut self, output: u64, content: u64) -> usize {
        let next = &mut self.next;
        *self.parts.entry((output, content)).or_insert_with(|| {
            let part = *next;
            *next += 1;
            part
        })
    }

    fn added(&mut self, output: u64, item: &Value, out: &mut Vec<Delta>) {
        match text(item, "type").unwrap_or_default() {
            "function_call" => {
                self.called = true;
                let part = self.part(output, 0);
                let id = CallId::new(text(item, "call_id").unwrap_or_default());
                let name = text(item, "name").unwrap_or_default().to_owned();
                out.push(delta(part, Change::Call { id, name }));
            }
            "reasoning" => {
                let part = self.part(output, 0);
                let text = String::new();
                out.push(delta(part, Change::Thinking { text }));
            }
            _ => {}
        }
    }

    /// The text of a message keeps the message's id, status and annotations, because the API requires them when the
    /// text is sent back. A refusal is a separate block.
    fn message_done(&mut self, output: u64, item: &Value, out: &mut Vec<Delta>) {
        let content = item.get("content").and_then(Value::as_array);
        for (index, part) in (0..).zip(content.into_iter().flatten()) {
            match text(part, "type").unwrap_or_default() {
                "output_text" if self.texts.contains(&(output, index)) && has_data(item, part) => {
                    let mut piece = part.clone();
                    if let Some(piece) = piece.as_object_mut() {
                        piece.remove("text");
                    }
                    let (wire, item) = (WIRE, with_content(item, piece));
                    let part = self.part(output, index);
                    out.push(delta(part, Change::Annotated { wire, item }));
                }
                "refusal" => {
                    let (wire, item) = (WIRE, with_content(item, part.clone()));
                    let block = Block::Native { wire, item };
                    let part = self.part(output, index);
                    out.push(delta(part, Change::Whole { block }));
                }
                _ => {}
            }
        }
    }

    fn done(&mut self, output: u64, item: &Value, out: &mut Vec<Delta>) {
        match text(item, "type").unwrap_or_default() {
            "reasoning" => {
                let part = self.part(output, 0);
                if let Some(value) = text(item, "encrypted_content") {
                    let signature = Signature {
                        wire: WIRE,
                        value: value.to_owned(),
                        id: text(item, "id").map(str::to_owned),
                    };
                    out.push(delta(part, Change::Signature { signature }));
                }
            }
            "message" => self.message_done(output, item, out),
            "function_call" => {}
            _ => {
                let (wire, item) = (WIRE, item.clone());
                let block = Block::Native { wire, item };
                let part = self.part(output, 0);
                out.push(delta(part, Change::Whole { block }));
            }
        }
    }

    fn completed(&mut self, response: &Value, stop: Option<StopReason>) {
        let calls = if self.called {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        };
        let usage = response.get("usage").filter(|usage| usage.is_object());
        self.end = Some(End {
            stop: stop.unwrap_or(calls),
            usage: usage.map(count),
            provider_request: text(response, "id").map(str::to_owned),
        });
    }

    pub fn finish(self) -> Option<End> {
        self.end
    }
}

/// Whether the API gave the text of a message more than the text.
fn has_data(message: &Value, part: &Value) -> bool {
    let annotations = part.get("annotations").and_then(Value::as_array);
    text(message, "id").is_some() || annotations.is_some_and(|list| !list.is_empty())
}

/// The message with one piece of its content.
fn with_content(message: &Value, piece: Value) -> Value {
    let mut message = message.clone();
    message["content"] = Value::Array(vec![piece]);
    message
}

/// The input's count includes tokens from the cache.
fn count(usage: &Value) -> Usage {
    let details = &usage["input_tokens_details"];
    let cached = number(details, "cached_tokens");
    let written = number(details, "cache_write_tokens");
    Usage {
        input_tokens: number(usage, "input_tokens")
            .saturating_sub(cached)
            .saturating_sub(written),
        output_tokens: number(usage, "output_tokens"),
        cache_read_tokens: cached,
        cache_write_tokens: written,
    }
}

fn broken(error: &Value) -> Broken {
    let class = match text(error, "code").unwrap_or_default() {
        "rate_limit_exceeded" => FailureClass::RateLimited,
        "context_length_exceeded" => FailureClass::ContextOverflow,
        "invalid_prompt" => FailureClass::Rejected,
        _ => FailureClass::Unavailable,
    };
    Broken::reported(class, error)
}
