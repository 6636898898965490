//! The lists of purged conversations beside backups. A backup that was made before a purge still has the content, so a restore
//! applies the purges that were made since: it reads the lists in the directory of the backup.
//!
//! A list is written again with each purge, each backup and each start of a daemon, from the journal. It has no text of a
//! conversation in it.

use crate::layout::Layout;
use crate::spawn::{blocking, spawn};
use agentd_core::id::{AgentId, ConversationId};
use agentd_files::foreign::{self, Links};
use agentd_files::own;
use agentd_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// Serializes changes of `backups.json`.
static CHANGING: Mutex<()> = Mutex::const_new(());

/// How long a purge waits for the lists. A directory may be on a disk that does not answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

type Locks = BTreeMap<PathBuf, Arc<Mutex<()>>>;

/// Serializes changes of each directory's list, also with a change that a disk has delayed: a list that was read from the
/// journal earlier must not replace a newer one. One lock for each directory, so that such a disk delays no other one.
static WRITING: std::sync::Mutex<Locks> = std::sync::Mutex::new(Locks::new());

/// Locks the list in a directory.
pub async fn lock(dir: &Path) -> OwnedMutexGuard<()> {
    let lock = {
        let mut locks = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(dir.to_owned()).or_default())
    };
    lock.lock_owned().await
}

const BEGIN: &str = "agentd-purges-";
const END: &str = ".jsonl";
/// The largest list that is read: that of some hundred thousand purges.
const MAX_LIST: u64 = 64 * 1024 * 1024;

/// One purged conversation: a line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PurgedConversation {
    pub agent: AgentId,
    pub conversation: ConversationId,
}

/// The file `backups.json` of a home: the directories that have backups of it.
#[derive(Default, Serialize, Deserialize)]
struct Known {
    directories: BTreeSet<PathBuf>,
}

/// The list of a home in a directory.
pub fn file(dir: &Path, home: Uuid) -> PathBuf {
    dir.join(format!("{BEGIN}{home}{END}"))
}

/// Whether a directory was known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    Before,
    Now,
}

/// Records that a directory has backups of this home.
pub async fn remember(layout: &Layout, dir: &Path) -> io::Result<Remembered> {
    let _changing = CHANGING.lock().await;
    let (layout, dir) = (layout.clone(), dir.to_owned());
    blocking(move || {
        let mut known = known(&layout)?;
        if !known.directories.insert(dir) {
            return Ok(Remembered::Before);
        }
        replace(&layout.backups(), &serde_json::to_vec(&known)?)?;
        Ok(Remembered::Now)
    })
    .await
}

/// Takes back what [`remember`] has recorded: the directory got no backup.
pub async fn forget(layout: &Layout, dir: &Path) -> io::Result<()> {
    let _changing = CHANGING.lock().await;
    let (layout, dir) = (layout.clone(), dir.to_owned());
    blocking(move || {
        let mut known = known(&layout)?;
        match known.directories.remove(&dir) {
            true => replace(&layout.backups(), &serde_json::to_vec(&known)?),
            false => Ok(()),
        }
    })
    .await
}

fn known(layout: &Layout) -> io::Result<Known> {
    match own::read(layout.backups()) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::default()),
        Err(error) => Err(error),
    }
}

/// Brings the lists in all known directories up to date. A directory that cannot be written gets its list with the next purge,
/// the next backup, or from the next daemon. One that does not answer in time gets it when it answers.
pub async fn update(store: &Arc<dyn Store>, layout: &Layout, home: Uuid) {
    update_within(store, layout, home, PATIENCE).await;
}

async fn update_within(store: &Arc<dyn Store>, layout: &Layout, home: Uuid, patience: Duration) {
    let found = known(layout).unwrap_or_else(|error| {
        tracing::warn!(%error, "backups.json not read: lists of purges not updated");
        Known::default()
    });
    let deadline = Instant::now() + patience;
    let writes = found.directories.into_iter().map(|dir| {
        let (store, to) = (Arc::clone(store), dir.clone());
        let write = spawn(
            "list of purges",
            async move { write(&*store, &to, home).await },
        );
        (dir, write)
    });
    let writes: Vec<_> = writes.collect();
    for (dir, write) in writes {
        let dir = dir.display();
        match timeout_at(deadline, write).await {
            // It was deleted, or its disk is not there: then it must stay known, because its backups still have the content.
            Ok(Ok(Ok(Err(error)))) if is_missing(&error) => {
                tracing::debug!(%dir, "list of purges not updated: no such directory");
            }
            Ok(Ok(Ok(Err(error)))) => {
                tracing::warn!(%dir, %error, "list of purges beside backups not updated");
            }
            Ok(_) => {}
            Err(_) => tracing::warn!(%dir, "list of purges beside backups delayed: no answer"),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Writes the list of a home in a directory.
pub async fn write(store: &dyn Store, dir: &Path, home: Uuid) -> io::Result<()> {
    let writing = lock(dir).await;
    let purged = store.purged_conversations().await;
    let purged = purged.map_err(io::Error::other)?;
    let mut text = Vec::new();
    for (agent, conversation) in purged {
        let line = PurgedConversation {
            agent,
            conversation,
        };
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
    }
    let path = file(dir, home);
    blocking(move || {
        // Until the file is written, also if the caller is gone.
        let _writing = writing;
        match text.is_empty() && !path.exists() {
            true => Ok(()),
            false => replace(&path, &text),
        }
    })
    .await
}

/// The purges in all lists of a directory. The error names the list that cannot be read.
pub fn read_all(dir: &Path) -> Result<BTreeSet<PurgedConversation>, (PathBuf, io::Error)> {
    let cannot = |error| (dir.to_owned(), error);
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let name = entry.file_name();
        let is_list = |name: &str| name.starts_with(BEGIN) && name.ends_with(END);
        if name.to_str().is_some_and(is_list) {
            let path = entry.path();
            let read = read(&path).map_err(|error| (path, error))?;
            all.extend(read);
        }
    }
    Ok(all)
}

/// A directory of backups may be shared with others: a link is not followed, a pipe is not waited for, and the size is bounded.
fn read(path: &Path) -> io::Result<Vec<PurgedConversation>> {
    let text = foreign::read_text(path, Links::NotLast, MAX_LIST)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Replaces a file atomically and durably.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let unready = path.with_extension("tmp");
    let _left_by_a_crash = fs::remove_file(&unready);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unready)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&unready, path)?;
    let dir = path.parent().unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::tests::bed;

    /// Regression: the purge did not end, and no later purge or backup either.
    #[tokio::test]
    async fn a_directory_that_does_not_answer_delays_no_other_one() {
        let (bed, root) = (bed(), tempfile::tempdir().unwrap());
        let (store, layout) = (&bed.daemon.store, &bed.daemon.layout);
        let home = bed.daemon.home.identity.id;
        let (hangs, works) = (root.path().join("a"), root.path().join("b"));
        for dir in [&hangs, &works] {
            fs::create_dir(dir).unwrap();
            fs::write(file(dir, home), "old").unwrap();
            remember(layout, dir).await.unwrap();
        }
        let content = |dir: &Path| fs::read_to_string(file(dir, home)).unwrap();
        let held = lock(&hangs).await;
        update_within(store, layout, home, Duration::from_secs(2)).await;
        assert_eq!(content(&hangs), "old");
        // It has its list when this returns, even if the disk was slow.
        drop(lock(&works).await);
        assert_eq!(content(&works), "");
        // The write that was delayed is next in line.
        drop(held);
        drop(lock(&hangs).await);
        assert_eq!(content(&hangs), "");
    }

    #[tokio::test]
    async fn directories_are_remembered_once() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        for dir in ["/a", "/b", "/a"] {
            remember(&layout, Path::new(dir)).await.unwrap();
        }
        let known = known(&layout).unwrap().directories;
        assert_eq!(known, BTreeSet::from(["/a".into(), "/b".into()]));
    }

    #[tokio::test]
    async fn a_directory_is_forgotten_alone() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        for (dir, is_new) in [
            ("/a", Remembered::Now),
            ("/b", Remembered::Now),
            ("/a", Remembered::Before),
        ] {
            let remembered = remember(&layout, Path::new(dir)).await;
            assert_eq!(remembered.unwrap(), is_new, "{dir}");
        }
        for dir in ["/a", "/c"] {
            forget(&layout, Path::new(dir)).await.unwrap();
        }
        let known = known(&layout).unwrap().directories;
        assert_eq!(known, BTreeSet::from(["/b".into()]));
    }

    /// Regression: a pipe was waited for, and a link to a device was read until the memory was full.
    #[test]
    fn only_a_regular_file_of_bounded_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), Uuid::nil());
        let refused = || {
            let (named, error) = read_all(dir.path()).unwrap_err();
            assert_eq!(named, path);
            fs::remove_file(&path).unwrap();
            error.to_string()
        };
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(refused(), "it is not a regular file");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(refused(), "it is a symbolic link");
        let sparse = File::create(&path).unwrap();
        sparse.set_len(MAX_LIST + 1).unwrap();
        assert_eq!(refused(), "it is too large");
    }

    #[test]
    fn all_lists_of_a_directory_count_and_a_damaged_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let line = |n| PurgedConversation {
            agent: AgentId::from_bytes([n; 16]),
            conversation: ConversationId::from_bytes([n; 16]),
        };
        for n in 1..=2 {
            let text = serde_json::to_vec(&line(n)).unwrap();
            replace(&file(dir.path(), Uuid::from_u128(n.into())), &text).unwrap();
        }
        fs::write(dir.path().join("notes.jsonl"), "no list").unwrap();
        let all = read_all(dir.path()).unwrap();
        assert_eq!(all, BTreeSet::from([line(1), line(2)]));
        let damaged = file(dir.path(), Uuid::from_u128(3));
        fs::write(&damaged, "{\"agent\":").unwrap();
        assert_eq!(read_all(dir.path()).unwrap_err().0, damaged);
    }
}
