//! The contents of updates as text.

use super::super::super::ChildEvent;
use crate::message::Block;
use serde_json::Value;

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
