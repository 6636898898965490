//! The contents of updates as text.

use super::super::super::ChildEvent;
use super::super::client::LONGEST_TERMINAL_ID;
use crate::message::Block;
use crate::outer::bounds;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many settings of a session are followed, and how much of a name or a value.
const MOST_SETTINGS: usize = 50;
const LONGEST_SETTING: usize = 200;

pub fn text(content: &Value) -> Option<String> {
    match content["type"].as_str()? {
        "text" => Some(content["text"].as_str()?.to_owned()),
        "resource_link" => Some(format!("[{}]", content["uri"].as_str().unwrap_or_default())),
        "resource" => {
            let resource = &content["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            let text = resource["text"].as_str().unwrap_or_default();
            Some(format!("[{uri}]\n{text}"))
        }
        kind => Some(format!("[{kind}]")),
    }
}

pub fn block(content: &Value) -> Option<Block> {
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

/// The terminal of the client that a content names.
pub fn terminal(content: &Value) -> Option<String> {
    let id = content["terminalId"].as_str()?;
    let is_terminal = content["type"] == "terminal" && id.len() <= LONGEST_TERMINAL_ID;
    is_terminal.then(|| id.to_owned())
}

pub fn raw_output(update: &Value) -> Option<Block> {
    match &update["rawOutput"] {
        Value::Null => None,
        Value::String(text) => Some(Block::text(text.clone())),
        other => Some(Block::text(other.to_string())),
    }
}

pub fn plan(update: &Value) -> Vec<ChildEvent> {
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

/// The agent has changed its mode.
pub fn mode(update: &Value) -> Vec<ChildEvent> {
    let mode = update["currentModeId"].as_str();
    let said = mode.map(|mode| ChildEvent::Thinking(format!("\nMode: {mode}\n")));
    said.into_iter().collect()
}

/// The settings of the session have changed. An agent reports all of them each time; those that are new or have another
/// value are told.
pub fn settings(update: &Value, known: &mut BTreeMap<String, String>) -> Vec<ChildEvent> {
    let short = |text: &str| bounds::cut(text, LONGEST_SETTING);
    let mut lines = String::new();
    for option in update["configOptions"].as_array().into_iter().flatten() {
        let value = match &option["currentValue"] {
            Value::String(value) => short(value),
            Value::Bool(value) => value.to_string(),
            _ => continue,
        };
        let Some(id) = option["id"].as_str().map(short) else {
            continue;
        };
        let is_followed = known.contains_key(&id) || known.len() < MOST_SETTINGS;
        if is_followed && known.get(&id) != Some(&value) {
            let name = option["name"].as_str().map_or_else(|| id.clone(), short);
            lines.push_str(&format!("Setting: {name}: {value}\n"));
            known.insert(id, value);
        }
    }
    match lines.is_empty() {
        true => Vec::new(),
        false => vec![ChildEvent::Thinking(format!("\n{lines}"))],
    }
}
