//! The texts of the files that the model knows, from its conversation: a new process can then show how a file has changed
//! since. A text counts only if its hash is recorded, so a text that was cut or redacted is not used.

use super::contents::Contents;
use super::scans::{Recalled, Scans};
use super::{apply_patch, edit_file, hash};
use agentd_core::message::{Block, ToolCall, ToolResult};
use agentd_core::patch::{self, FilePatch, Patch};
use agentd_core::window::{Entry, Window};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const READ: &str = "read_file";

/// Recalls texts that the model knows, and what its calls left in files.
pub(super) fn recall(contents: &Contents, scans: &Scans, window: &Window) {
    let known: BTreeSet<&str> = window.seen_files().contents().collect();
    // By the path as the model wrote it: what its last change left.
    let mut left: BTreeMap<String, Recalled> = BTreeMap::new();
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
                let Some(call) = calls.get(result.call.as_str()) else {
                    continue;
                };
                for path in named_by(call) {
                    match left.get(&path) {
                        // What the model knows of it now may be what a command left.
                        Some(Recalled::AsSeen) if call.name == READ => drop(left.remove(&path)),
                        _ if call.name == READ => {}
                        _ => drop(left.insert(path, Recalled::AsSeen)),
                    }
                }
                left.extend(removed_by(call).map(|path| (path, Recalled::Removed)));
                for (path, text) in texts_after(call, result, &texts) {
                    let hash = hash::of(text.as_bytes());
                    let is_known = known.contains(hash.as_str());
                    if is_known {
                        contents.keep(&hash, text.as_bytes());
                    }
                    if call.name != READ && is_known {
                        left.insert(path.clone(), Recalled::Content(hash));
                    }
                    texts.insert(path, text);
                }
            }
            _ => {}
        }
    }
    scans.recall(left.into_iter().collect(), window.seen_files().clone());
}

/// The path of the file that a call reads or writes, and the paths that a patch writes.
fn named_by(call: &ToolCall) -> Vec<String> {
    let arguments = call.arguments.to_object();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    match call.name.as_str() {
        READ | "write_file" | "edit_file" => argument("file_path")
            .map(str::to_owned)
            .into_iter()
            .collect(),
        patch::TOOL => {
            let patch = argument("input").and_then(|input| Patch::parse(input).ok());
            let files = patch.into_iter().flat_map(|patch| patch.files);
            let written = files.filter_map(|file| match file {
                FilePatch::Add { path, .. } => Some(path),
                FilePatch::Update { path, move_to, .. } => Some(move_to.unwrap_or(path)),
                FilePatch::Delete { .. } => None,
            });
            written.collect()
        }
        _ => Vec::new(),
    }
}

/// The paths that a patch removed, as the model wrote them.
fn removed_by(call: &ToolCall) -> impl Iterator<Item = String> {
    let input = match call.name == patch::TOOL {
        true => call.arguments.to_object().get("input").cloned(),
        false => None,
    };
    let patch = input.and_then(|input| Patch::parse(input.as_str()?).ok());
    let files = patch.into_iter().flat_map(|patch| patch.files);
    files.filter_map(|file| match file {
        FilePatch::Delete { path }
        | FilePatch::Update {
            path,
            move_to: Some(_),
            ..
        } => Some(path),
        FilePatch::Add { .. } | FilePatch::Update { .. } => None,
    })
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
        (READ, [Block::Text { text }]) => text.clone(),
        ("write_file", _) => argument("content")?,
        ("edit_file", _) => {
            let arguments = Value::Object(arguments.clone());
            edit_file::edited(arguments, texts.get(&path)?)?
        }
        _ => return None,
    };
    Some((path, text))
}
