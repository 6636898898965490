//! The texts of the files that the model knows, from its conversation: a new process can then show how a file has changed
//! since. A text counts only if its hash is recorded, so a text that was cut or redacted is not used.

use super::contents::Contents;
use super::{apply_patch, edit_file, hash};
use agentd_core::message::{Block, ToolCall, ToolResult};
use agentd_core::patch;
use agentd_core::window::{Entry, Window};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn recall(contents: &Contents, window: &Window) {
    let known: BTreeSet<&str> = window.seen_files().contents().collect();
    if known.is_empty() {
        return;
    }
    let mut calls: BTreeMap<&str, &ToolCall> = BTreeMap::new();
    // By the path as the model wrote it.
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for item in window.items() {
        match &item.entry {
            Entry::Reply { blocks, .. } => {
                let new = blocks.iter().filter_map(Block::as_call);
                calls.extend(new.map(|call| (call.id.as_str(), call)));
            }
            Entry::Result(result) if result.outcome.is_ok() => {
                let call = calls.get(result.call.as_str());
                let after = call.map(|call| texts_after(call, result, &texts));
                for (path, text) in after.into_iter().flatten() {
                    let hash = hash::of(text.as_bytes());
                    if known.contains(hash.as_str()) {
                        contents.keep(&hash, text.as_bytes());
                    }
                    texts.insert(path, text);
                }
            }
            _ => {}
        }
    }
}

/// The paths of the files that a call read or wrote, and the texts that they have after the call.
fn texts_after(
    call: &ToolCall,
    result: &ToolResult,
    texts: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    if call.name == patch::TOOL {
        let arguments = call.arguments.to_object();
        let input = arguments.get("input").and_then(Value::as_str);
        return apply_patch::patched(input.unwrap_or_default(), |path| texts.get(path).cloned());
    }
    text_after(call, result, texts).into_iter().collect()
}

fn text_after(
    call: &ToolCall,
    result: &ToolResult,
    texts: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let arguments = call.arguments.to_object();
    let argument = |name: &str| arguments.get(name)?.as_str().map(str::to_owned);
    let path = argument("file_path")?;
    let text = match (call.name.as_str(), result.blocks.as_slice()) {
        ("read_file", [Block::Text { text }]) => text.clone(),
        ("write_file", _) => argument("content")?,
        ("edit_file", _) => {
            let arguments = Value::Object(arguments.clone());
            edit_file::edited(arguments, texts.get(&path)?)?
        }
        _ => return None,
    };
    Some((path, text))
}
