//! opencode before its database: `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json` and
//! `storage/part/MESSAGE/PART.json`. The names of files are ids, in order.

use agentd_core::import_history::Record;
use agentd_files::foreign::{self, Links};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The bytes of one file.
const LARGEST: u64 = 64 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct SessionFiles;

impl SessionFiles {
    /// The session in this file, and its messages with their parts.
    pub(super) fn records(&self, path: &Path, each: &mut dyn FnMut(Record<'_>)) {
        let session = read(path);
        pass_on(session.as_ref(), each);
        let id = path.file_stem().unwrap_or_default();
        let storage = path.ancestors().nth(3).unwrap_or(path);
        for message in sorted(&storage.join("message").join(id)) {
            let Some(Value::Object(mut found)) = read(&message) else {
                pass_on(None, each);
                continue;
            };
            let id = message.file_stem().unwrap_or_default();
            let parts = sorted(&storage.join("part").join(id));
            let Some(parts) = read_all(&message, &parts, LARGEST) else {
                each(Record::TooLong);
                continue;
            };
            found.insert("parts".to_owned(), parts.into());
            pass_on(Some(&found.into()), each);
        }
    }
}

/// The parts of a message; none if all of it is larger than `most`. Each part counts a little more than its file, so that
/// their number has a limit too.
fn read_all(message: &Path, parts: &[PathBuf], most: u64) -> Option<Vec<Value>> {
    let size = |file: &Path| fs::symlink_metadata(file).map_or(0, |it| it.len());
    let mut left = most.checked_sub(size(message))?;
    let mut values = Vec::new();
    for part in parts {
        left = left.checked_sub(size(part).saturating_add(64))?;
        values.push(read(part).unwrap_or_default());
    }
    Some(values)
}

fn pass_on(record: Option<&Value>, each: &mut dyn FnMut(Record<'_>)) {
    let text = record.map_or_else(|| "damaged".to_owned(), Value::to_string);
    each(Record::Text(text.as_bytes()));
}

fn read(path: &Path) -> Option<Value> {
    let bytes = foreign::read(path, Links::NotLast, LARGEST).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "json"));
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_message_have_a_limit_together() {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = (0..3).map(|n| dir.path().join(n.to_string())).collect();
        for file in &files {
            fs::write(file, "{\"a\":1}").unwrap();
        }
        let (message, parts) = files.split_first().unwrap();
        let each = "{\"a\":1}".len() as u64;
        let all = each + 2 * (each + 64);
        let read = read_all(message, parts, all).unwrap();
        assert_eq!(
            read,
            [serde_json::json!({"a": 1}), serde_json::json!({"a": 1})]
        );
        assert_eq!(read_all(message, parts, all - 1), None);
    }
}
