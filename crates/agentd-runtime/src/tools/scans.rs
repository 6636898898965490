//! What scans for changed files remember within one process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What scans remember within one process.
#[derive(Debug, Default)]
pub(super) struct Scans {
    /// The content that file tools left, by path; `None` for a file that they removed.
    left: Mutex<BTreeMap<PathBuf, Option<String>>>,
}

impl Scans {
    pub fn wrote(&self, path: &Path, hash: &str) {
        self.leave(path, Some(hash.to_owned()));
    }

    pub fn removed(&self, path: &Path) {
        self.leave(path, None);
    }

    fn leave(&self, path: &Path, content: Option<String>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.insert(path.to_owned(), content);
    }

    /// Whether a file tool left the path like this: with this content, or removed.
    pub fn is_left(&self, path: &Path, content: Option<&str>) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(path)
            .is_some_and(|left| left.as_deref() == content)
    }
}
