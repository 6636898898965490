//! Gemini: each event is a piece of a response; calls arrive complete.

use super::{Broken, End, Open, Parts, delta, number, text};
use crate::draft::{Change, Delta};
use crate::event::{FailureClass, StopReason};
use crate::id::CallId;
use crate::message::{Block, Signature, Wire};
use crate::usage::Usage;
use crate::wire::gemini::GROUNDING;
use serde_json::{Value, json};

const WIRE: Wire = Wire::Gemini;

#[derive(Default)]
pub struct Decoder {
    parts: Parts,
    /// The text of the open part, in case a signature for it arrives.
    written: String,
    /// The newest part with text that nothing is attached to yet.
    plain: Option<usize>,
    /// The sources of the answer. They come in pieces, the last of which is complete.
    grounding: Option<Value>,
    called: bool,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    id: Option<String>,
}

impl Decoder {
    pub fn event(&mut self, response: &Value, out: &mut Vec<Delta>) -> Result<(), Broken> {
        if let Some(error) = response.get("error") {
            return Err(broken(error));
        }
        if let Some(id) = text(response, "responseId") {
            self.id = Some(id.to_owned());
        }
        if let Some(usage) = response.get("usageMetadata") {
            self.usage = Some(count(usage));
        }
        if let Some(reason) = text(&response["promptFeedback"], "blockReason") {
            return Err(Broken {
                class: FailureClass::Refused,
                detail: format!("the provider blocked the prompt ({reason})"),
            });
        }
        let candidates = response.get("candidates").and_then(Value::as_array);
        for candidate in candidates.into_iter().flatten().take(1) {
            let parts = candidate["content"].get("parts").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.part(part, out);
            }
            let grounding = candidate.get(GROUNDING).filter(|it| !is_blank(it));
            self.grounding = grounding.cloned().or(self.grounding.take());
            if let Some(reason) = text(candidate, "finishReason") {
                self.stop = Some(self.stop_reason(reason)?);
                self.attach_grounding(out);
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        let signature = text(part, "thoughtSignature").map(|value| Signature {
            wire: WIRE,
            value: value.to_owned(),
            id: None,
        });
        if let Some(call) = part.get("functionCall") {
            return self.call(call, signature, out);
        }
        let Some(words) = text(part, "text") else {
            let (wire, item) = (WIRE, part.clone());
            let block = Block::Native { wire, item };
            out.push(delta(self.parts.begin(), Change::Whole { block }));
            return;
        };
        let words = words.to_owned();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            let at = self.parts.running(Open::Thinking);
            out.push(delta(at, Change::Thinking { text: words }));
            if let Some(signature) = signature {
                out.push(delta(at, Change::Signature { signature }));
            }
            return;
        }
        let is_continued = matches!(self.parts.open, Some((_, Open::Text)));
        // A signature may arrive by itself, after its text. Without a text there is nothing to keep, and the sources of an
        // answer belong to its last text.
        if words.is_empty() && (!is_continued || signature.is_none()) {
            return;
        }
        if !is_continued {
            self.written.clear();
        }
        let at = self.parts.running(Open::Text);
        self.written.push_str(&words);
        if !words.is_empty() {
            out.push(delta(at, Change::Text { text: words }));
            self.plain = Some(at);
        }
        if let Some(signature) = signature {
            let item = json!({"text": self.written, "thoughtSignature": signature.value});
            out.push(delta(at, Change::Annotated { wire: WIRE, item }));
            self.parts.open = None;
            self.plain = None;
        }
    }

    /// Keeps the sources with the last text of the answer, or by themselves.
    fn attach_grounding(&mut self, out: &mut Vec<Delta>) {
        let Some(grounding) = self.grounding.take() else {
            return;
        };
        let change = |item: Value| Change::Annotated { wire: WIRE, item };
        out.push(match self.plain.take() {
            Some(at) => {
                let item = json!({"text": self.written, (GROUNDING): grounding});
                delta(at, change(item))
            }
            None => delta(self.parts.begin(), change(json!({(GROUNDING): grounding}))),
        });
    }

    fn call(&mut self, call: &Value, signature: Option<Signature>, out: &mut Vec<Delta>) {
        self.called = true;
        let at = self.parts.begin();
        let id = CallId::new(text(call, "id").unwrap_or_default());
        let name = text(call, "name").unwrap_or_default().to_owned();
        out.push(delta(at, Change::Call { id, name }));
        if let Some(args) = call.get("args") {
            let json = args.to_string();
            out.push(delta(at, Change::Arguments { json }));
        }
        if let Some(signature) = signature {
            out.push(delta(at, Change::Signature { signature }));
        }
    }

    fn stop_reason(&self, reason: &str) -> Result<StopReason, Broken> {
        Ok(match reason {
            "STOP" if self.called => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                StopReason::Refusal
            }
            "MALFORMED_FUNCTION_CALL" => {
                return Err(Broken::malformed(
                    "the model wrote a call that cannot be read",
                ));
            }
            _ => StopReason::Other,
        })
    }

    pub fn finish(self) -> Option<End> {
        let (usage, provider_request) = (self.usage, self.id);
        self.stop.map(|stop| End {
            stop,
            usage,
            provider_request,
        })
    }
}

fn is_blank(value: &Value) -> bool {
    value.as_object().is_none_or(serde_json::Map::is_empty)
}

/// The prompt's count includes tokens from the cache; thoughts are counted separately.
fn count(usage: &Value) -> Usage {
    let cached = number(usage, "cachedContentTokenCount");
    Usage {
        input_tokens: number(usage, "promptTokenCount").saturating_sub(cached),
        output_tokens: number(usage, "candidatesTokenCount")
            .saturating_add(number(usage, "thoughtsTokenCount")),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
    }
}

fn broken(error: &Value) -> Broken {
    let class = match text(error, "status").unwrap_or_default() {
        "RESOURCE_EXHAUSTED" => FailureClass::RateLimited,
        "UNAVAILABLE" => FailureClass::Overloaded,
        "INVALID_ARGUMENT" => FailureClass::Rejected,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => FailureClass::Unauthorized,
        _ => FailureClass::Unavailable,
    };
    Broken::reported(class, error)
}
