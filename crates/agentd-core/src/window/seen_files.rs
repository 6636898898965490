//! The files whose content the model knows. File tools change no other existing file, so that the model never overwrites
//! a content that it has not seen.

use crate::event::{FileSeen, RestoredFile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By the hash of the file's path, the hash of the content that the model has read or written last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeenFiles(Arc<BTreeMap<String, String>>);

impl SeenFiles {
    /// The hash of the content that the model knows; `None` if it has not seen the file.
    pub fn content_of(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(String::as_str)
    }

    /// The hashes of all contents that the model knows.
    pub fn contents(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    pub fn extend(&mut self, seen: &[FileSeen]) {
        if seen.is_empty() {
            return;
        }
        let files = Arc::make_mut(&mut self.0);
        files.extend(seen.iter().map(|it| (it.file.clone(), it.content.clone())));
    }

    /// The files have another content now than the model knows, so it must read them again.
    pub fn forget(&mut self, restored: &[RestoredFile]) {
        if restored.is_empty() || self.0.is_empty() {
            return;
        }
        let files = Arc::make_mut(&mut self.0);
        for it in restored {
            files.remove(&FileSeen::file_of(it.path.as_bytes()));
        }
    }
}
