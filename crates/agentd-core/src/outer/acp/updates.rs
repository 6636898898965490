//! `session/update`: what an agent does in its turn.

pub(super) mod content;
mod costs;

pub use costs::Costs;

use super::super::{ChildEvent, LONGEST_ID, UNNAMED, bounds};
use crate::message::{Block, CallOutcome};
use crate::usage::{MicroUsd, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many calls may be open at a time. Of more than that, only the beginning and the end are known.
const MOST_OPEN: usize = 200;
/// How much memory they may use. Of calls that exceed it, the same is known.
const OPEN_BYTES: usize = 4 * 1024 * 1024;
/// How much of a call's terminal is kept.
const MOST_TERMINAL: usize = 256 * 1024;
/// How many terminals of the client one call shows.
const MOST_TERMINALS: usize = 16;
/// Where agents put more output of a call's terminal: pi, and Codex.
const TERMINAL_OUTPUT: [&str; 2] = ["terminal_output", "terminal_output_delta"];

/// What must be remembered between updates.
#[derive(Debug, Default)]
pub struct Updates {
    /// The settings of the session that were reported, and their values.
    settings: BTreeMap<String, String>,
    /// The calls that have not ended.
    calls: BTreeMap<String, Known>,
    /// What the session has cost.
    pub costs: Costs,
}

/// What is known of a call. Agents report a call before its arguments are complete, and change it later.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    kind: Option<String>,
    title: Option<String>,
    input: Map<String, Value>,
    content: Vec<Block>,
    /// The output of its terminal, which some agents send beside the content.
    terminal: String,
    /// The terminals of the client that its content names.
    terminals: Vec<String>,
}

/// What a terminal of the client shows, by its id; `None` if there is no such terminal.
pub type Shown<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Known {
    /// Newer fields replace older ones. A field that the agent leaves out stays.
    fn learn(&mut self, call: &Value) {
        // A title that is longer makes the arguments too long to be recorded, as the whole title would.
        let text = |name: &str, longest| Some(bounds::cut(call[name].as_str()?, longest));
        self.kind = text("kind", bounds::LONGEST_NAME)
            .filter(|kind| kind != "other")
            .or(self.kind.take());
        self.title = text("title", bounds::LONGEST_ARGUMENTS + 1).or(self.title.take());
        match &call["rawInput"] {
            Value::Null => {}
            Value::Object(map) => self.input.extend(map.clone()),
            other => {
                self.input.insert("input".to_owned(), other.clone());
            }
        }
        self.input = bounds::arguments(std::mem::take(&mut self.input));
        let content = call["content"].as_array();
        if let Some(content) = content.filter(|content| !content.is_empty()) {
            self.content = bounds::blocks(content.iter().filter_map(content::block));
            self.terminals.clear();
            for id in content.iter().filter_map(content::terminal) {
                if self.terminals.len() < MOST_TERMINALS && !self.terminals.contains(&id) {
                    self.terminals.push(id);
                }
            }
        }
        for name in TERMINAL_OUTPUT {
            if let Some(data) = call["_meta"][name]["data"].as_str() {
                let room = MOST_TERMINAL.saturating_sub(self.terminal.len());
                self.terminal.push_str(&bounds::cut(data, room));
            }
        }
    }

    /// What kind of call it is, in the words of the protocol: `execute`, `edit`, `read`, … Some agents give no kind; a
    /// call with a command is one that runs it.
    fn name(&self) -> String {
        match &self.kind {
            Some(kind) => kind.clone(),
            None if self.input.contains_key("command") => "execute".to_owned(),
            None => UNNAMED.to_owned(),
        }
    }

    fn arguments(&self) -> Map<String, Value> {
        let mut arguments = self.input.clone();
        if let Some(title) = &self.title {
            arguments.entry("title").or_insert_with(|| json!(title));
        }
        arguments
    }

    /// About how much memory it uses.
    fn memory(&self) -> usize {
        let content = self.content.iter().map(bounds::block_bytes);
        let title = self.title.as_ref().map_or(0, String::len);
        bounds::fields_memory(&self.input) + content.sum::<usize>() + title + self.terminal.len()
    }

    fn result(self, update: &Value, shown: Shown<'_>) -> Vec<Block> {
        let terminals = self.terminals.iter().filter_map(|id| shown(id));
        let terminals = terminals.filter(|text| !text.is_empty()).map(Block::text);
        let content: Vec<Block> = self.content.into_iter().chain(terminals).collect();
        if !content.is_empty() {
            return content;
        }
        match self.terminal.is_empty() {
            false => vec![Block::text(self.terminal)],
            true => content::raw_output(update).into_iter().collect(),
        }
    }
}

impl Updates {
    /// What an agent says that uses no terminals of the client.
    #[cfg(test)]
    pub fn read(&mut self, update: &Value) -> Vec<ChildEvent> {
        self.read_with(update, &|_| None)
    }

    /// What the agent says with an update. The result of a call contains what its terminals show when it ends.
    pub fn read_with(&mut self, update: &Value, shown: Shown<'_>) -> Vec<ChildEvent> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => content::text(&update["content"])
                .map(ChildEvent::Text)
                .into_iter()
                .collect(),
            "agent_thought_chunk" => {
                let thought = content::text(&update["content"]).map(ChildEvent::Thinking);
                thought.into_iter().collect()
            }
            "tool_call" | "tool_call_update" => self.call(update, shown),
            "plan" => content::plan(update),
            "current_mode_update" => content::mode(update),
            "config_option_update" => content::settings(update, &mut self.settings),
            "usage_update" => self.usage(update).into_iter().collect(),
            // Commands and the user's own words change nothing here.
            _ => Vec::new(),
        }
    }

    /// The question of a permission request.
    pub fn asks(&mut self, request: &Value, question: String) -> Option<ChildEvent> {
        let call = &request["toolCall"];
        let id = id(call)?;
        let known = self.known(&id);
        known.learn(call);
        Some(ChildEvent::Asks {
            name: known.name(),
            arguments: known.arguments(),
            id,
            question,
        })
    }

    /// A new turn: what is left of earlier calls belongs to no turn any more.
    pub fn begin_turn(&mut self) {
        self.calls.clear();
    }

    fn known(&mut self, id: &str) -> &mut Known {
        if !self.calls.contains_key(id) && self.calls.len() >= MOST_OPEN {
            self.calls.pop_first();
        }
        let other = |calls: &BTreeMap<String, Known>| calls.keys().find(|it| *it != id).cloned();
        while self.calls.values().map(Known::memory).sum::<usize>() > OPEN_BYTES
            && let Some(other) = other(&self.calls)
        {
            self.calls.remove(&other);
        }
        self.calls.entry(id.to_owned()).or_default()
    }

    fn call(&mut self, update: &Value, shown: Shown<'_>) -> Vec<ChildEvent> {
        let Some(id) = id(update) else {
            return Vec::new();
        };
        let is_known = self.calls.contains_key(&id);
        let is_report = update["sessionUpdate"] == "tool_call";
        let status = update["status"].as_str();
        let mut unknown = Known::default();
        let known = match is_known || is_report {
            true => self.known(&id),
            // An update after the end of the call, or of a call that was not reported.
            false => &mut unknown,
        };
        let before = (known.name(), known.arguments());
        known.learn(update);
        let (name, arguments) = (known.name(), known.arguments());
        let has_changed = (&name, &arguments) != (&before.0, &before.1);
        let mut said = Vec::new();
        match (is_known, is_report) {
            (false, true) => said.push(ChildEvent::Call {
                id: id.clone(),
                name,
                arguments,
                is_pending: status == Some("pending"),
            }),
            (true, _) if has_changed => said.push(ChildEvent::CallChanged {
                id: id.clone(),
                name,
                arguments,
            }),
            _ => {}
        }
        let outcome = match status {
            Some("in_progress") => {
                said.push(ChildEvent::CallBegan { id });
                return said;
            }
            Some("completed") => CallOutcome::Ok,
            Some("failed") => CallOutcome::Error,
            _ => return said,
        };
        let known = self.calls.remove(&id).unwrap_or(unknown);
        said.push(ChildEvent::CallEnded {
            id,
            outcome,
            blocks: known.result(update, shown),
        });
        said
    }

    /// A session reports its cost in total.
    fn usage(&mut self, update: &Value) -> Option<ChildEvent> {
        let total = update["cost"]["amount"].as_f64()?;
        let currency = update["cost"]["currency"].as_str();
        let is_usd = currency.is_none_or(|it| it == "USD");
        let cost = is_usd.then(|| self.costs.reported(total)).flatten();
        Some(ChildEvent::Spent {
            usage: Usage::default(),
            cost,
        })
    }
}

/// The id of a call; `None` if it has none, or one that is too long.
fn id(call: &Value) -> Option<String> {
    let id = call["toolCallId"].as_str()?;
    (id.len() <= LONGEST_ID).then(|| id.to_owned())
}

/// What the answer to `session/prompt` says about tokens.
pub fn spent(answer: &Value, cost: Option<MicroUsd>) -> Option<ChildEvent> {
    let tokens = |usage: &Value, name: &str| usage[name].as_u64().unwrap_or_default();
    let (usage, quota) = (&answer["usage"], &answer["_meta"]["quota"]["token_count"]);
    let usage = match (usage.is_object(), quota.is_object()) {
        (true, _) => Usage {
            input_tokens: tokens(usage, "inputTokens"),
            output_tokens: tokens(usage, "outputTokens"),
            cache_read_tokens: tokens(usage, "cachedReadTokens"),
            cache_write_tokens: tokens(usage, "cachedWriteTokens"),
        },
        // As Gemini CLI reports it.
        (false, true) => Usage {
            input_tokens: tokens(quota, "input_tokens"),
            output_tokens: tokens(quota, "output_tokens"),
            ..Usage::default()
        },
        (false, false) => return None,
    };
    Some(ChildEvent::Spent { usage, cost })
}

#[cfg(test)]
mod tests;
