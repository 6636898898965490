//! OpenAI Chat Completions: one message that grows; calls grow by their index.

use super::{Broken, End, Open, Parts, delta, number, text};
use crate::draft::{Change, Delta};
use crate::event::{FailureClass, StopReason};
use crate::id::CallId;
use crate::message::{Block, Wire};
use crate::usage::Usage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Decoder {
    parts: Parts,
    /// The part of each call, by the provider's index.
    calls: BTreeMap<u64, usize>,
    refusal: String,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    id: Option<String>,
    done: bool,
}

impl Decoder {
    pub fn event(&mut self, chunk: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(broken(error));
        }
        if let Some(id) = text(chunk, "id").filter(|id| !id.is_empty()) {
            self.id = Some(id.to_owned());
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(count(usage));
        }
        let choices = chunk.get("choices").and_then(Value::as_array);
        for choice in choices.into_iter().flatten().take(1) {
            self.grow(&choice["delta"], out)?;
            if let Some(reason) = text(choice, "finish_reason") {
                self.close_refusal(out);
                self.stop = Some(stop_reason(reason));
            }
        }
        Ok(())
    }

    fn grow(&mut self, change: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        // Two names for the same field, on different servers.
        let thinking = text(change, "reasoning_content").or_else(|| text(change, "reasoning"));
        if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            let part = self.parts.running(Open::Thinking);
            let text = text.to_owned();
            out.push(delta(part, Change::Thinking { text }));
        }
        if let Some(text) = text(change, "content").filter(|text| !text.is_empty()) {
            let part = self.parts.running(Open::Text);
            let text = text.to_owned();
            out.push(delta(part, Change::Text { text }));
        }
        if let Some(refusal) = text(change, "refusal") {
            self.refusal.push_str(refusal);
        }
        let calls = change.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let index = number(call, "index");
        let function = &call["function"];
        let part = match self.calls.get(&index) {
            Some(part) => *part,
            None => {
                let Some(name) = text(function, "name") else {
                    return Err(Broken::malformed(format!("call {index} has no name")));
                };
                let part = self.parts.begin();
                self.calls.insert(index, part);
                let id = CallId::new(text(call, "id").unwrap_or_default());
                let name = name.to_owned();
                out.push(delta(part, Change::Call { id, name }));
                part
            }
        };
        if let Some(json) = text(function, "arguments").filter(|json| !json.is_empty()) {
            let json = json.to_owned();
            out.push(delta(part, Change::Arguments { json }));
        }
        Ok(())
    }

    fn close_refusal(&mut self, out: &mut Vec<Delta>) {
        if self.refusal.is_empty() {
            return;
        }
        let refusal = std::mem::take(&mut self.refusal);
        let block = Block::Native {
            wire: Wire::OpenaiChat,
            item: json!({"type": "refusal", "refusal": refusal}),
        };
        out.push(delta(self.parts.begin(), Change::Whole { block }));
    }

    pub const fn done(&mut self) {
        self.done = true;
    }

    /// Some servers omit the last line; a finish reason is sufficient.
    pub fn finish(self) -> Option<End> {
        if self.stop.is_none() && !(self.done && self.parts.next > 0) {
            return None;
        }
        Some(End {
            stop: self.stop.unwrap_or(StopReason::Other),
            usage: self.usage,
            provider_request: self.id,
        })
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}

/// The prompt's count includes tokens from the cache.
fn count(usage: &Value) -> Usage {
    let details = &usage["prompt_tokens_details"];
    let cached = number(details, "cached_tokens");
    let written = number(details, "cache_write_tokens");
    Usage {
        input_tokens: number(usage, "prompt_tokens")
            .saturating_sub(cached)
            .saturating_sub(written),
        output_tokens: number(usage, "completion_tokens"),
        cache_read_tokens: cached,
        cache_write_tokens: written,
    }
}

fn broken(error: &Value) -> Broken {
    let kind = text(error, "type").or_else(|| text(error, "code"));
    let class = match kind.unwrap_or_default() {
        "rate_limit_error" | "rate_limit_exceeded" => FailureClass::RateLimited,
        "overloaded_error" | "overloaded" => FailureClass::Overloaded,
        "context_length_exceeded" => FailureClass::ContextOverflow,
        "invalid_request_error" => FailureClass::Rejected,
        _ => FailureClass::Unavailable,
    };
    Broken::reported(class, error)
}
