//! `session/update`: what an agent does in its turn.

use super::super::{ChildEvent, UNNAMED};
use crate::message::{Block, CallOutcome};
use crate::usage::{MicroUsd, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What must be remembered between updates.
#[derive(Debug, Default)]
pub struct Updates {
    /// The calls that have not ended, with the text of their content so far.
    calls: BTreeMap<String, Vec<Block>>,
    /// What the session has cost in total, when it was reported last.
    cost: Option<f64>,
}

impl Updates {
    pub fn read(&mut self, update: &Value) -> Vec<ChildEvent> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => text(&update["content"])
                .map(ChildEvent::Text)
                .into_iter()
                .collect(),
            "agent_thought_chunk" => {
                let thought = text(&update["content"]).map(ChildEvent::Thinking);
                thought.into_iter().collect()
            }
            "tool_call" => self.call(update, true),
            "tool_call_update" => self.call(update, false),
            "plan" => plan(update),
            "usage_update" => self.usage(update).into_iter().collect(),
            // Commands, modes, options and the user's own words change nothing here.
            _ => Vec::new(),
        }
    }

    /// The question of a permission request.
    pub fn asks(&mut self, request: &Value, question: String) -> Option<ChildEvent> {
        let call = &request["toolCall"];
        let id = call["toolCallId"].as_str()?.to_owned();
        self.calls.entry(id.clone()).or_default();
        Some(ChildEvent::Asks {
            name: name(call),
            arguments: arguments(call),
            id,
            question,
        })
    }

    fn call(&mut self, update: &Value, is_first: bool) -> Vec<ChildEvent> {
        let Some(id) = update["toolCallId"].as_str().map(str::to_owned) else {
            return Vec::new();
        };
        let mut said = Vec::new();
        if is_first && !self.calls.contains_key(&id) {
            said.push(ChildEvent::Call {
                id: id.clone(),
                name: name(update),
                arguments: arguments(update),
            });
        }
        let known = self.calls.entry(id.clone()).or_default();
        let content = update["content"].as_array();
        if let Some(content) = content.filter(|content| !content.is_empty()) {
            *known = content.iter().filter_map(block).collect();
        }
        let outcome = match update["status"].as_str() {
            Some("in_progress") => {
                said.push(ChildEvent::CallBegan { id });
                return said;
            }
            Some("completed") => CallOutcome::Ok,
            Some("failed") => CallOutcome::Error,
            _ => return said,
        };
        let mut blocks = self.calls.remove(&id).unwrap_or_default();
        if blocks.is_empty() {
            blocks.extend(raw_output(update));
        }
        said.push(ChildEvent::CallEnded {
            id,
            outcome,
            blocks,
        });
        said
    }

    /// A session reports its cost in total.
    fn usage(&mut self, update: &Value) -> Option<ChildEvent> {
        let total = update["cost"]["amount"].as_f64()?;
        let is_usd = update["cost"]["currency"]
            .as_str()
            .is_none_or(|it| it == "USD");
        let before = self.cost.replace(total).unwrap_or_default();
        let cost = super::super::micro_usd((total - before).max(0.0)).filter(|_| is_usd);
        Some(ChildEvent::Spent {
            usage: Usage::default(),
            cost,
        })
    }
}

/// What the answer to `session/prompt` says about tokens.
pub fn spent(answer: &Value, cost: Option<MicroUsd>) -> Option<ChildEvent> {
    let usage = answer.get("usage").filter(|usage| usage.is_object())?;
    let tokens = |name: &str| usage[name].as_u64().unwrap_or_default();
    Some(ChildEvent::Spent {
        usage: Usage {
            input_tokens: tokens("inputTokens"),
            output_tokens: tokens("outputTokens"),
            cache_read_tokens: tokens("cachedReadTokens"),
            cache_write_tokens: tokens("cachedWriteTokens"),
        },
        cost,
    })
}

fn text(content: &Value) -> Option<String> {
    match content["type"].as_str()? {
        "text" => Some(content["text"].as_str()?.to_owned()),
        "resource_link" => Some(format!("[{}]", content["uri"].as_str().unwrap_or_default())),
        kind => Some(format!("[{kind}]")),
    }
}

/// What kind of call it is, in the words of the protocol: `execute`, `edit`, `read`, …
fn name(call: &Value) -> String {
    let kind = call["kind"].as_str().filter(|kind| *kind != "other");
    kind.unwrap_or(UNNAMED).to_owned()
}

fn arguments(call: &Value) -> Map<String, Value> {
    let mut arguments = match &call["rawInput"] {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    };
    if let Some(title) = call["title"].as_str() {
        arguments.entry("title").or_insert_with(|| json!(title));
    }
    arguments
}

fn block(content: &Value) -> Option<Block> {
    let said = match content["type"].as_str()? {
        "content" => text(&content["content"])?,
        "diff" => format!(
            "{}\n--- before\n{}\n+++ after\n{}",
            content["path"].as_str().unwrap_or_default(),
            content["oldText"].as_str().unwrap_or_default(),
            content["newText"].as_str().unwrap_or_default()
        ),
        _ => return None,
    };
    Some(Block::text(said))
}

fn raw_output(update: &Value) -> Option<Block> {
    match &update["rawOutput"] {
        Value::Null => None,
        Value::String(text) => Some(Block::text(text.clone())),
        other => Some(Block::text(other.to_string())),
    }
}

fn plan(update: &Value) -> Vec<ChildEvent> {
    let entries = update["entries"].as_array().into_iter().flatten();
    let lines = entries.filter_map(|entry| {
        let mark = match entry["status"].as_str() {
            Some("completed") => "x",
            Some("in_progress") => ">",
            _ => " ",
        };
        Some(format!("[{mark}] {}\n", entry["content"].as_str()?))
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => Vec::new(),
        false => vec![ChildEvent::Thinking(format!("\nPlan:\n{lines}"))],
    }
}
