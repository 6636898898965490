//! Where a home records the directories of its backups, and that it is being restored from one.

use super::Layout;
use std::path::PathBuf;

impl Layout {
    /// The directories that have backups of this home; see `purge_log`.
    pub fn backups(&self) -> PathBuf {
        self.home().join("backups.json")
    }

    /// While it exists, a backup is being restored into this directory, or a restore did not complete: it is not a home yet. See
    /// `backup/restore/staging`.
    pub fn unfinished_restore(&self) -> PathBuf {
        self.home().join(".agentd-restore")
    }
}
