//! What kind of call a call is, and how it changes files, as far as its arguments say it.

use crate::render::patched;
use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolKind};
use agentd_core::patch::{self, FilePatch, HunkLine};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

pub fn kind(tool: &str, input: &Map<String, Value>) -> ToolKind {
    match tool {
        "read_file" => ToolKind::Read,
        "edit_file" | "write_file" => ToolKind::Edit,
        "list_files" | "search_files" => ToolKind::Search,
        "fetch_url" => ToolKind::Fetch,
        "shell" | "task_output" | "task_stop" => ToolKind::Execute,
        patch::TOOL => of_patch(input),
        _ => ToolKind::Other,
    }
}

/// A patch that only deletes, or only moves, is shown as that.
fn of_patch(input: &Map<String, Value>) -> ToolKind {
    let files = patched::patch_of(input).map(|patch| patch.files);
    let files = files.unwrap_or_default();
    let is_delete = |file: &FilePatch| matches!(file, FilePatch::Delete { .. });
    let is_move = |file: &FilePatch| matches!(file, FilePatch::Update { move_to: Some(_), hunks, .. } if hunks.is_empty());
    match files.as_slice() {
        [] => ToolKind::Edit,
        files if files.iter().all(is_delete) => ToolKind::Delete,
        files if files.iter().all(is_move) => ToolKind::Move,
        _ => ToolKind::Edit,
    }
}

/// How a call changes files, as far as its arguments say it.
pub fn diffs(
    tool: &str,
    input: &Map<String, Value>,
    before: Option<&str>,
    absolute: impl Fn(&str) -> PathBuf,
) -> Vec<ToolCallContent> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let diff = |path: &Path, old: Option<String>, new: String| {
        ToolCallContent::Diff(Diff::new(path, new).old_text(old))
    };
    match tool {
        "edit_file" => {
            let (Some(path), Some(old), Some(new)) =
                (text("file_path"), text("old_string"), text("new_string"))
            else {
                return Vec::new();
            };
            vec![diff(&absolute(path), Some(old.to_owned()), new.to_owned())]
        }
        "write_file" => {
            let (Some(path), Some(new)) = (text("file_path"), text("content")) else {
                return Vec::new();
            };
            let old = before.map(str::to_owned);
            vec![diff(&absolute(path), old, new.to_owned())]
        }
        patch::TOOL => {
            let files = patched::patch_of(input).map(|patch| patch.files);
            let files = files.unwrap_or_default().into_iter();
            files
                .filter_map(|file| {
                    let path = absolute(file.paths().last()?);
                    let (old, new) = sides(&file)?;
                    Some(diff(&path, old, new))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The lines of a patch before and after; nothing for a file that is deleted, whose content it does not say.
fn sides(file: &FilePatch) -> Option<(Option<String>, String)> {
    match file {
        FilePatch::Add { text, .. } => Some((None, text.clone())),
        FilePatch::Delete { .. } => None,
        FilePatch::Update { hunks, .. } => {
            let (mut old, mut new) = (String::new(), String::new());
            for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                let (text, sides): (_, [Option<&mut String>; 2]) = match line {
                    HunkLine::Keep(text) => (text, [Some(&mut old), Some(&mut new)]),
                    HunkLine::Remove(text) => (text, [Some(&mut old), None]),
                    HunkLine::Add(text) => (text, [None, Some(&mut new)]),
                };
                for side in sides.into_iter().flatten() {
                    side.push_str(text);
                    side.push('\n');
                }
            }
            (!hunks.is_empty()).then_some((Some(old), new))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(text: &str) -> Map<String, Value> {
        json!({ "input": text }).as_object().cloned().unwrap()
    }

    #[test]
    fn a_patch_is_a_diff_of_each_file() {
        let patch = input(
            "*** Begin Patch\n*** Update File: a.rs\n@@\n same\n-old\n+new\n*** Add File: b.rs\n+first\n*** End Patch",
        );
        assert_eq!(kind(patch::TOOL, &patch), ToolKind::Edit);
        let found = diffs(patch::TOOL, &patch, None, |path| Path::new("/w").join(path));
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found[0]["path"], "/w/a.rs");
        assert_eq!(found[0]["oldText"], "same\nold\n");
        assert_eq!(found[0]["newText"], "same\nnew\n");
        assert_eq!(found[1]["path"], "/w/b.rs");
        assert_eq!(found[1].get("oldText"), None);
    }

    #[test]
    fn a_patch_that_only_deletes_is_a_deletion() {
        let patch = input("*** Begin Patch\n*** Delete File: a.rs\n*** End Patch");
        assert_eq!(kind(patch::TOOL, &patch), ToolKind::Delete);
        assert!(diffs(patch::TOOL, &patch, None, |path| path.into()).is_empty());
    }
}
