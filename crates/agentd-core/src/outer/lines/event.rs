//! The JSON lines of a command, as `agentd agent --json` writes them.

use super::super::{ChildEvent, LONGEST_ID, Over, UNNAMED, bounds};
use crate::event::LimitKind;
use crate::message::{Arguments, Block, CallOutcome, ToolCall};
use crate::usage::{MicroUsd, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How much text of deltas is compared with the message that follows.
const MOST_STREAMED: usize = 4 * 1024 * 1024;
/// How many calls of a turn are known when a question about one comes.
const MOST_CALLS: usize = 200;
/// How much memory they may use.
const CALLS_BYTES: usize = 4 * 1024 * 1024;

/// What must be remembered between lines.
#[derive(Debug, Default)]
pub struct Events {
    /// The text of the deltas since the last message.
    streamed: String,
    /// Text was said since the last result of a turn.
    has_text: bool,
    /// The calls of the messages, for the questions about them.
    calls: BTreeMap<String, (String, Map<String, Value>)>,
    /// The memory of their arguments.
    calls_bytes: usize,
    /// A `turn_result` was the last event.
    is_over: bool,
    /// The delivery that the child was given last.
    expected: Option<String>,
    /// The deliveries whose late answers have ended.
    late: Vec<String>,
}

impl Events {
    pub fn expect(&mut self, delivery: &str) {
        if self.expected.as_deref() != Some(delivery) {
            self.expected = Some(delivery.to_owned());
        }
    }

    pub fn take_late(&mut self) -> Vec<String> {
        std::mem::take(&mut self.late)
    }

    /// What belongs to an earlier delivery is shown to no one, but what it has cost counts. A child that was killed continues
    /// its turn when it is started again.
    fn late(&mut self, kind: &str, id: String, value: &Value) -> Vec<ChildEvent> {
        if kind != "turn_result" {
            return Vec::new();
        }
        self.late.push(id);
        value.get("usage").and_then(spent).into_iter().collect()
    }

    /// `None` if the line is not an event.
    pub fn read(&mut self, line: &[u8]) -> Option<Vec<ChildEvent>> {
        if bounds::has_too_many_values(line) {
            return None;
        }
        let value: Value = serde_json::from_slice(line).ok()?;
        let kind = value.as_object()?.get("kind")?.as_str()?.to_owned();
        let id = value.get("turn_id").and_then(Value::as_str);
        let is_other = |id: &&str| self.expected.as_deref().is_some_and(|it| it != *id);
        if let Some(id) = id.filter(is_other).map(str::to_owned) {
            return Some(self.late(&kind, id, &value));
        }
        // Events of the journal have a body; lines of simpler programs need none.
        let body = value.get("body").filter(|body| body.is_object());
        let body = body.unwrap_or(&value);
        let said = match kind.as_str() {
            "delta" => self.delta(&value),
            "message" => self.message(body),
            "tool_started" => call_of(body).map(|id| ChildEvent::CallBegan { id }),
            "result" => result(body),
            "approval_requested" => self.asks(body),
            "turn_result" => return Some(self.turn_result(&value)),
            "error" => {
                let why = text_at(&value, "/error/message").unwrap_or("the prompt was refused");
                let why = format!("the program reported an error: {why}");
                return Some(vec![ChildEvent::Over(Over::Failed(why))]);
            }
            _ => None,
        };
        let mut all: Vec<ChildEvent> = said.into_iter().collect();
        if kind == "message" {
            all.extend(self.calls_of(body));
        }
        self.is_over &= all.is_empty();
        Some(all)
    }

    /// The next answer begins with text.
    pub fn text_follows(&mut self) {
        (self.has_text, self.is_over) = (true, false);
    }

    /// Whether a `turn_result` has ended the answer; once.
    pub fn take_over(&mut self) -> bool {
        std::mem::take(&mut self.is_over)
    }

    fn delta(&mut self, value: &Value) -> Option<ChildEvent> {
        let text = value.get("text")?.as_str()?;
        match value.get("type").and_then(Value::as_str) {
            Some("text") => {
                // A text that is longer is dropped from the answer too.
                if self.streamed.len() < MOST_STREAMED {
                    self.streamed.push_str(text);
                }
                self.has_text = true;
                Some(ChildEvent::Text(text.to_owned()))
            }
            Some("thinking") => Some(ChildEvent::Thinking(text.to_owned())),
            _ => None,
        }
    }

    /// The authoritative text of a reply: the part of it that no delta has brought.
    fn message(&mut self, body: &Value) -> Option<ChildEvent> {
        let streamed = std::mem::take(&mut self.streamed);
        if body.get("status").and_then(Value::as_str) == Some("superseded") {
            return (!streamed.is_empty()).then(|| ChildEvent::Text("\n".to_owned()));
        }
        let mut full = match body.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => texts(body.get("blocks")?),
        };
        // In place: it may be large.
        match full.starts_with(&streamed) {
            true => drop(full.drain(..streamed.len())),
            false => full.insert(0, '\n'),
        }
        let rest = full;
        if rest.is_empty() {
            return None;
        }
        self.has_text = true;
        Some(ChildEvent::Text(rest))
    }

    fn calls_of(&mut self, body: &Value) -> Vec<ChildEvent> {
        let blocks = body.get("blocks").and_then(Value::as_array);
        let calls = blocks.into_iter().flatten().filter_map(|block| {
            let call = call_in(block)?;
            if call.id.as_str().len() > LONGEST_ID {
                return None;
            }
            let arguments = match call.arguments {
                Arguments::Object(map) => map,
                raw @ Arguments::Malformed(_) => raw.to_object(),
            };
            let arguments = bounds::arguments(arguments);
            Some((call.id.to_string(), call.name, arguments))
        });
        let calls: Vec<(String, String, Map<String, Value>)> = calls.collect();
        let said = |(id, name, arguments): (String, String, Map<String, Value>)| {
            let memory = bounds::fields_memory(&arguments);
            if self.calls.len() < MOST_CALLS && self.calls_bytes + memory <= CALLS_BYTES {
                self.calls_bytes += memory;
                let known = (name.clone(), arguments.clone());
                self.calls.insert(id.clone(), known);
            }
            ChildEvent::Call {
                id,
                name,
                arguments,
                is_pending: false,
            }
        };
        calls.into_iter().map(said).collect()
    }

    fn asks(&self, body: &Value) -> Option<ChildEvent> {
        let id = call_of(body)?;
        let question = body.get("approval")?.as_str()?.to_owned();
        let known = self.calls.get(&id).cloned();
        let (name, arguments) = known.unwrap_or_else(|| (UNNAMED.to_owned(), Map::new()));
        Some(ChildEvent::Asks {
            id,
            name,
            arguments,
            question,
        })
    }

    fn turn_result(&mut self, value: &Value) -> Vec<ChildEvent> {
        let mut said = Vec::new();
        let text = value
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let status = value.get("status").and_then(Value::as_str);
        if !std::mem::take(&mut self.has_text) && !text.is_empty() {
            said.push(ChildEvent::Text(text.to_owned()));
        }
        said.extend(value.get("usage").and_then(spent));
        // A program may have limits that have no name here.
        let limit = value.get("error").cloned().unwrap_or_default();
        let limit: Option<LimitKind> = serde_json::from_value(limit).ok();
        let over = match status {
            None | Some("completed") => Over::Answered,
            Some("interrupted") => Over::Interrupted,
            Some(status) => match limit.filter(|_| status == "limited") {
                Some(limit) => Over::Limited(limit),
                None => {
                    let why = value.get("error").and_then(Value::as_str);
                    let why = why.or_else(|| text_at(value, "/error/message"));
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    Over::Failed(format!("the program's turn ended as {status}{why}"))
                }
            },
        };
        said.push(ChildEvent::Over(over));
        self.streamed.clear();
        self.calls.clear();
        self.calls_bytes = 0;
        self.is_over = true;
        said
    }
}

/// A call in a message. Its arguments are `{"object": {…}}`, as `agentd agent` writes them, or the plain object. What can
/// be both is taken as the first: `docs/runtimes.md` says so.
fn call_in(block: &Value) -> Option<ToolCall> {
    if block.get("type").and_then(Value::as_str) != Some("tool_call") {
        return None;
    }
    let mut block = block.clone();
    let arguments = block.get("arguments").cloned().unwrap_or_default();
    let is_wrapped = serde_json::from_value::<Arguments>(arguments.clone()).is_ok();
    if !is_wrapped {
        block["arguments"] = match arguments {
            Value::Null => json!({ "object": {} }),
            Value::Object(plain) => json!({ "object": plain }),
            Value::String(text) => serde_json::to_value(Arguments::parse(&text)).ok()?,
            other => json!({ "malformed": other.to_string() }),
        };
    }
    match serde_json::from_value(block) {
        Ok(Block::ToolCall(call)) => Some(call),
        _ => None,
    }
}

fn text_at<'a>(value: &'a Value, at: &str) -> Option<&'a str> {
    value.pointer(at).and_then(Value::as_str)
}

fn call_of(body: &Value) -> Option<String> {
    let id = body.get("call")?.as_str()?;
    (id.len() <= LONGEST_ID).then(|| id.to_owned())
}

fn result(body: &Value) -> Option<ChildEvent> {
    let id = call_of(body)?;
    let outcome = body.get("outcome").cloned().unwrap_or_default();
    let outcome = serde_json::from_value(outcome).unwrap_or(CallOutcome::Ok);
    let blocks = body.get("blocks").cloned().unwrap_or_default();
    let blocks: Vec<Block> = serde_json::from_value(blocks).unwrap_or_default();
    let text = body.get("text").and_then(Value::as_str).map(Block::text);
    Some(ChildEvent::CallEnded {
        id,
        outcome,
        blocks: blocks.into_iter().filter(is_shown).chain(text).collect(),
    })
}

/// What a result may contain.
const fn is_shown(block: &Block) -> bool {
    matches!(block, Block::Text { .. } | Block::Image { .. })
}

fn texts(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| {
        let kind = block.get("type")?.as_str()?;
        let is_text = matches!(kind, "text" | "annotated");
        block.get("text")?.as_str().filter(|_| is_text)
    });
    texts.collect()
}

fn spent(usage: &Value) -> Option<ChildEvent> {
    let tokens = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let cost = usage.get("cost_usd").and_then(Value::as_f64);
    Some(ChildEvent::Spent {
        usage: Usage {
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
            ..Usage::default()
        },
        cost: cost.and_then(micro_usd),
    })
}

/// Rounded up: a budget must never be exceeded by a remainder.
pub fn micro_usd(dollars: f64) -> Option<MicroUsd> {
    let micro = (dollars * 1e6).ceil();
    // A cost beyond this is a mistake of the program.
    let is_cost = (0.0..1e15).contains(&micro);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number in range"
    )]
    is_cost.then_some(MicroUsd(micro as u64))
}
