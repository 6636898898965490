//! How a store is opened, and where its files are.

use super::head;
use std::path::PathBuf;
use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that holds the database files.
    pub dir: PathBuf,
    /// Connections that read side by side.
    pub readers: usize,
    /// Appends that may wait for the writer; beyond that, senders wait.
    pub queue: usize,
    /// How long to wait for a lock that another process holds.
    pub lock_timeout: Duration,
    /// The follower takes a snapshot of an agent after this many events.
    pub snapshot_every: u64,
    /// SQLite's name of the file layer; none is the platform's.
    pub vfs: Option<String>,
    /// Directories whose entries are named after agents. Where one has entries and the journal is gone,
    /// that is an error, never a new home.
    pub beside: Vec<PathBuf>,
    /// Is told, in the lab alone, what is about to be committed and what was.
    pub failpoints: Option<Failpoints>,
    /// Says, in the lab alone, which mistakes are to be made on purpose.
    pub injected_bugs: Option<InjectedBugs>,
}

/// When, what, and of what kind.
pub type Failpoints = fn(&str, &str, &str);
/// Whether the mistake of this name is to be made.
pub type InjectedBugs = fn(&str) -> bool;

impl Options {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            readers: 2,
            queue: 1024,
            lock_timeout: Duration::from_secs(5),
            snapshot_every: 512,
            vfs: None,
            beside: Vec::new(),
            failpoints: None,
            injected_bugs: None,
        }
    }

    pub(in crate::sqlite) fn is_injected_bug(&self, name: &str) -> bool {
        self.injected_bugs
            .is_some_and(|injected_bugs| injected_bugs(name))
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.dir.join("journal.db")
    }

    /// Whether there is a journal, or anything that shows that there was one.
    pub fn has_traces(&self) -> bool {
        let files = [self.journal(), self.head(), self.journal_log()];
        files.iter().any(|file| file.is_file()) || head::agents_beside(self).next().is_some()
    }

    /// The write-ahead log of the journal.
    pub(super) fn journal_log(&self) -> PathBuf {
        self.dir.join("journal.db-wal")
    }

    pub(super) fn head(&self) -> PathBuf {
        self.dir.join("journal.head")
    }

    pub(super) fn derived(&self) -> PathBuf {
        self.dir.join("derived.db")
    }
}
