//! The paths of files whose earlier content is no longer in the journal. A purge deletes the path with the content; other
//! events may still tell it.

use super::change::{IsDone, Lost, LostFile};
use super::history::History;
use crate::event::{FileSeen, Position};
use crate::patch::{self, FilePatch, Patch};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl History {
    /// The changes with a path that is not known, which the arguments of their call may tell.
    pub fn unnamed(&self) -> impl Iterator<Item = &Lost> {
        let made = self.lost.iter().filter(|lost| lost.done != IsDone::No);
        made.filter(|lost| lost.call.is_some() && lost.files.iter().any(is_unnamed))
    }

    /// Names files by the other changes of the same paths.
    pub fn name_by_changes(&mut self) {
        if !self
            .lost
            .iter()
            .any(|lost| lost.files.iter().any(is_unnamed))
        {
            return;
        }
        let known = self.changes().iter();
        let known = known.map(|change| (FileSeen::file_of(change.path.as_bytes()), &change.path));
        let names: BTreeMap<String, String> =
            known.map(|(file, path)| (file, path.clone())).collect();
        let files = self.lost.iter_mut().flat_map(|lost| &mut lost.files);
        for file in files.filter(|file| is_unnamed(file)) {
            let name = file.file.as_ref().and_then(|file| names.get(file));
            file.path = name.cloned();
        }
    }

    /// Names the files of the call whose start is this event. `paths` are those that its arguments name, absolute; one
    /// that leads through a link is another one than the file's.
    pub fn name_by_call(&mut self, started: Position, paths: &[String]) {
        let lost = self.lost.iter_mut().find(|lost| lost.event == started);
        let Some(lost) = lost else { return };
        for file in lost.files.iter_mut().filter(|file| is_unnamed(file)) {
            let is_it = |path: &&String| {
                file.file.as_deref() == Some(FileSeen::file_of(path.as_bytes()).as_str())
            };
            file.path = paths.iter().find(is_it).cloned();
        }
        if let ([file], [path]) = (lost.files.as_mut_slice(), paths) {
            file.path.get_or_insert_with(|| path.clone());
        }
    }
}

const fn is_unnamed(file: &LostFile) -> bool {
    file.path.is_none()
}

/// The paths that a call of a file tool changes, as the model wrote them.
pub fn paths_of_call(tool: &str, arguments: &Map<String, Value>) -> Vec<String> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    if tool != patch::TOOL {
        return argument("file_path")
            .map(str::to_owned)
            .into_iter()
            .collect();
    }
    let patch = argument("input").and_then(|input| Patch::parse(input).ok());
    let files = patch.into_iter().flat_map(|patch| patch.files);
    let paths = files.flat_map(|file| match file {
        FilePatch::Add { path, .. } | FilePatch::Delete { path } => vec![path],
        FilePatch::Update { path, move_to, .. } => [path].into_iter().chain(move_to).collect(),
    });
    paths.collect()
}
