//! The lists of purged conversations beside backups. A backup that was made before a purge still has the content, so a restore
//! applies the purges that were made since: it reads the lists in the directory of the backup.
//!
//! A list is written again with each purge, each backup and each start of a daemon, from the journal. It has no text of a
//! conversation in it.

use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_core::id::{AgentId, ConversationId};
use agentd_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tokio::sync::Mutex;
use uuid::Uuid;

/// Serializes changes: a list that was read from the journal earlier must not replace a newer one.
static CHANGING: Mutex<()> = Mutex::const_new(());

const BEGIN: &str = "agentd-purges-";
const END: &str = ".jsonl";

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

/// Records that a directory has backups of this home.
pub async fn remember(layout: &Layout, dir: &Path) -> io::Result<()> {
    let _changing = CHANGING.lock().await;
    let (layout, dir) = (layout.clone(), dir.to_owned());
    blocking(move || {
        let mut known = known(&layout)?;
        if !known.directories.insert(dir) {
            return Ok(());
        }
        replace(&layout.backups(), &serde_json::to_vec(&known)?)
    })
    .await
}

fn known(layout: &Layout) -> io::Result<Known> {
    match fs::read(layout.backups()) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::default()),
        Err(error) => Err(error),
    }
}

/// Brings the lists in all known directories up to date. A directory that cannot be written gets its list with the next purge,
/// the next backup, or from the next daemon.
pub async fn update(store: &dyn Store, layout: &Layout, home: Uuid) {
    let found = known(layout).unwrap_or_else(|error| {
        tracing::warn!(%error, "backups.json not read: lists of purges not updated");
        Known::default()
    });
    for dir in found.directories {
        if let Err(error) = write(store, &dir, home).await {
            tracing::warn!(dir = %dir.display(), %error, "list of purges beside backups not updated");
        }
    }
}

/// Writes the list of a home in a directory.
pub async fn write(store: &dyn Store, dir: &Path, home: Uuid) -> io::Result<()> {
    let _changing = CHANGING.lock().await;
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
    blocking(move || match text.is_empty() && !path.exists() {
        true => Ok(()),
        false => replace(&path, &text),
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

fn read(path: &Path) -> io::Result<Vec<PurgedConversation>> {
    let text = fs::read_to_string(path)?;
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
