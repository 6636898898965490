//! Backups of the journal: what a store writes, and the marks by which an incremental backup continues an earlier one.

use serde::{Deserialize, Serialize};
use std::io;

/// The largest part that a store writes: one row of the largest event.
pub const MAX_PART: usize = 96 * 1024 * 1024;

/// Receives a backup of the journal, part by part. Parts are opaque: only the same backend can read them.
pub trait BackupSink: Send {
    /// Stores the next part. An error ends the backup.
    fn part(&mut self, part: &[u8]) -> io::Result<()>;
}

/// How far a backup of the journal goes. A text that only the store can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackupMark(pub(crate) String);

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    pub mark: BackupMark,
    /// The agents of the store, archived ones included.
    pub agents: u64,
    /// The events of the store at the moment of the backup.
    pub events: u64,
}

/// The position of a backup in its chain when it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A later backup of the chain follows.
    Earlier,
    Last,
}
