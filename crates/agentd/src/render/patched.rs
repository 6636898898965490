//! The files of a patch, as a person would say what happens to them.

use crate::terminal::visible;
use agentd_core::patch::{FilePatch, Patch};
use serde_json::{Map, Value};

/// The patch of a call of `apply_patch`; none if it cannot be read.
pub fn patch_of(input: &Map<String, Value>) -> Option<Patch> {
    Patch::parse(input.get("input")?.as_str()?).ok()
}

/// `edit src/lib.rs`, `write a.md`, `delete b.txt`, `move a.rs to b.rs`.
pub fn title(file: &FilePatch) -> String {
    let path = visible(file.path());
    match file {
        FilePatch::Add { .. } => format!("write {path}"),
        FilePatch::Delete { .. } => format!("delete {path}"),
        FilePatch::Update {
            move_to: Some(to), ..
        } => format!("move {path} to {}", visible(to)),
        FilePatch::Update { .. } => format!("edit {path}"),
    }
}
