//! The files of the outbox.

use super::Layout;
use std::path::PathBuf;

/// The name of the file that exists while a daemon runs, and after one that was killed.
pub const RUNNING_MARK: &str = "running.mark.json";

impl Layout {
    /// Where the destinations of messages keep their positions, and the list of bindings.
    pub fn outbox(&self) -> PathBuf {
        self.home().join("outbox")
    }

    pub fn running_mark(&self) -> PathBuf {
        self.outbox().join(RUNNING_MARK)
    }
}
