//! Where a home records the directories of its backups.

use super::Layout;
use std::path::PathBuf;

impl Layout {
    /// The directories that have backups of this home; see `purge_log`.
    pub fn backups(&self) -> PathBuf {
        self.home().join("backups.json")
    }
}
