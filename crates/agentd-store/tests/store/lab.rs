//! A directory with a store in it, which a test can look at past the store.

pub use crate::author::{Author, agent_id, events_of};
pub use crate::run::{run, soon};

use agentd_store::{Options, SqliteStore};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Whether the parts that take long are asked for.
pub fn long() -> bool {
    std::env::var_os("AGENTD_TEST_LONG").is_some_and(|value| value == "1")
}

/// A directory of its own.
pub struct Lab {
    dir: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn options(&self) -> Options {
        Options::new(self.dir())
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(self.options()).unwrap()
    }

    /// A connection of the test's own, past the store.
    pub fn journal(&self) -> Connection {
        Connection::open(self.dir().join("journal.db")).unwrap()
    }

    pub fn derived(&self) -> Connection {
        Connection::open(self.dir().join("derived.db")).unwrap()
    }

    /// The same files somewhere else, as a crash at this moment would leave them.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        copy_dir(&self.dir(), &copy.dir());
        copy
    }
}

/// The databases and their logs, without the index of the log: that is memory, not disk.
///
/// Read through `cat`, because a process that opens and closes a database file by itself gives up
/// the locks that SQLite holds on it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with("-shm") {
            continue;
        }
        let out = std::fs::File::create(to.join(&name)).unwrap();
        let status = std::process::Command::new("cat")
            .arg(entry.path())
            .stdout(out)
            .status()
            .unwrap();
        assert!(status.success());
    }
}
