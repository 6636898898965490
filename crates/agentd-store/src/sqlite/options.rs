//! How a store is opened, and where its files are.

use agentd_core::id::AgentId;
use std::path::PathBuf;
use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that holds the database files.
    pub dir: PathBuf,
    /// Connections that read concurrently.
    pub readers: usize,
    /// Appends that may wait for the writer; when the queue is full, senders wait.
    pub queue: usize,
    /// How long to wait for a lock that another process holds.
    pub lock_timeout: Duration,
    /// The follower takes a snapshot of an agent after this many events.
    pub snapshot_every: u64,
    /// SQLite's name of the file layer (VFS); none means the platform's default.
    pub vfs: Option<String>,
    /// Directories whose entries are named after agents. An entry shows that a journal existed: if the journal is
    /// missing, opening is then an error instead of creating a new one.
    pub beside: Vec<PathBuf>,
    /// Lab only: called before and after each commit.
    pub failpoints: Option<Failpoints>,
    /// Lab only: which injected bugs are active.
    pub injected_bugs: Option<InjectedBugs>,
}

/// The name of the file that exists while a repair replaces the journal's files.
pub(super) const REPLACING: &str = "replacing";

/// Called with the moment (`before` or `after`), the operation (`commit`), and what is committed.
pub type Failpoints = fn(&str, &str, &str);
/// Whether the injected bug of this name is active.
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

    /// Whether a journal exists, or any sign that one existed.
    pub fn has_traces(&self) -> bool {
        let files = [self.journal(), self.head(), self.journal_log()];
        files.iter().any(|file| file.is_file()) || self.agents_beside().next().is_some()
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

    /// The agents that have their own directories.
    pub(super) fn agents_beside(&self) -> impl Iterator<Item = AgentId> {
        let entries = self.beside.iter().filter_map(|it| it.read_dir().ok());
        let names = entries.flatten().filter_map(|entry| entry.ok());
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok())
    }

    /// The damaged files while a repair runs.
    pub(super) fn damaged(&self) -> PathBuf {
        self.dir.join("damaged.partial")
    }

    /// Exists while a repair moves the new files into place; they are complete then.
    pub(super) fn replacing(&self) -> PathBuf {
        self.damaged().join(REPLACING)
    }

    /// Whether a repair was interrupted while it replaced the files. The journal must not be opened then.
    pub(super) fn is_replacing(&self) -> bool {
        self.replacing().exists()
    }
}
