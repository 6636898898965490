//! The directories of restores of files that are in progress.

use super::Layout;
use agentd_core::digest::sha256;
use agentd_core::id::OpId;
use std::path::PathBuf;

impl Layout {
    fn restores(&self) -> PathBuf {
        self.home().join("restores")
    }

    /// An op can be any text: its directory has the name of its digest.
    pub fn restore_dir(&self, op: OpId) -> PathBuf {
        self.restores().join(sha256(op.as_bytes()))
    }

    /// The directories of all restores.
    pub fn all_restores(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.restores());
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}
