//! A patch as handlers see it that were written for tools that change one file: one call for each of its files.

use crate::lexical_path::normalised;
use crate::patch::{Change, FilePatch, Hunk, HunkLine, Patch};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The names of a tool that makes such a change, in other programs and here.
pub const fn usual_names(change: Change) -> [&'static str; 2] {
    match change {
        Change::Write => ["Write", "write_file"],
        Change::Update | Change::Remove => ["Edit", "edit_file"],
    }
}

/// Each path of a patch with what happens to it, in the form of those tools' arguments. None if the text is not a patch.
pub fn files(input: &str) -> Option<Vec<(Change, Map<String, Value>)>> {
    let patch = Patch::parse(input).ok()?;
    let files = patch.files.iter().flat_map(|file| {
        let changes = file.changes();
        changes.map(move |(path, change)| (change, arguments(file, path, change)))
    });
    Some(files.collect())
}

fn arguments(file: &FilePatch, path: &str, change: Change) -> Map<String, Value> {
    let mut arguments = Map::new();
    arguments.insert("file_path".to_owned(), json!(path));
    match (file, change) {
        (FilePatch::Add { text, .. }, _) => {
            arguments.insert("content".to_owned(), json!(text));
        }
        (FilePatch::Update { hunks, .. }, Change::Update | Change::Write) => {
            let text = |is_in: fn(&HunkLine) -> Option<&str>| {
                let lines = hunks.iter().flat_map(|hunk: &Hunk| &hunk.lines);
                lines.filter_map(is_in).collect::<Vec<_>>().join("\n")
            };
            arguments.insert("old_string".to_owned(), json!(text(old)));
            arguments.insert("new_string".to_owned(), json!(text(new)));
        }
        _ => {}
    }
    arguments
}

fn old(line: &HunkLine) -> Option<&str> {
    match line {
        HunkLine::Keep(text) | HunkLine::Remove(text) => Some(text),
        HunkLine::Add(_) => None,
    }
}

fn new(line: &HunkLine) -> Option<&str> {
    match line {
        HunkLine::Keep(text) | HunkLine::Add(text) => Some(text),
        HunkLine::Remove(_) => None,
    }
}

/// The arguments with an absolute path, without `.` and `..`, as the tool itself reads it.
pub(super) fn at(cwd: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut arguments = arguments.clone();
    if let Some(Value::String(path)) = arguments.get_mut("file_path") {
        *path = normalised(&Path::new(cwd).join(&*path))
            .display()
            .to_string();
    }
    arguments
}
