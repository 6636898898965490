//! Backups of the home.

use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `POST /v1/backups`. The response is a stream of `progress`, and then `end` with a [`Backup`], or `problem`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackUp {
    /// A file, or a directory in which the backup gets a name of its own. An absolute path.
    pub to: String,
    /// Only what the newest backup of this home in the same directory does not have.
    #[serde(default)]
    pub incremental: bool,
    /// Replace an existing file.
    #[serde(default)]
    pub replace: bool,
}

/// How far a backup has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProgress {
    pub bytes: u64,
    /// An estimate of all bytes; none for an incremental backup.
    pub of: Option<u64>,
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub file: String,
    /// By which an incremental backup refers to it.
    pub digest: String,
    pub bytes: u64,
    #[serde(with = "super::time")]
    pub made_at: Timestamp,
    pub home_id: String,
    pub incremental: bool,
    /// The name of the backup that this one continues.
    pub parent: Option<String>,
    /// Why it has everything although an incremental one was requested.
    pub why_full: Option<String>,
    pub agents: u64,
    pub events: u64,
    /// The files of the home: settings, hooks and kept output.
    pub files: u64,
    /// How many of them this backup itself contains; its parents have the others.
    pub files_stored: u64,
}
