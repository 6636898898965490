//! The record of what tools planted and what could not be moved away. It outlives every process, so that no tool starts
//! before the user has removed what is named there.

use agentd_files::own;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How long the record may become. A tool decides how much cannot be moved away; one name is enough to keep tools from
/// starting.
const MOST_BYTES: u64 = 64 * 1024;

/// The file: paths, each ended by a NUL byte.
#[derive(Debug)]
pub struct Record {
    /// `None`: nothing is recorded.
    path: Option<PathBuf>,
}

/// What keeps the tools of an agent from starting: the first name of its record that is still there.
pub fn planted(record: &Path) -> Option<PathBuf> {
    let text = own::read(record).ok()?;
    names(&text).find(|path| is_there(path))
}

impl Record {
    pub fn at(path: &Path) -> Self {
        let is_kept = !path.as_os_str().is_empty();
        Self {
            path: is_kept.then(|| path.to_owned()),
        }
    }

    /// The first name that is still there. A record of which nothing is left is removed.
    pub fn first(&self) -> Option<PathBuf> {
        let path = self.path.as_deref()?;
        let found = planted(path);
        if found.is_none() && path.exists() {
            // If this fails, the names are looked up again next time.
            let _kept = self.forget(path);
        }
        found
    }

    /// Adds names. An error is ignored: the result of the tool has them too, and most of them are found again when the next
    /// tool starts.
    pub fn add<'a>(&self, stays: impl Iterator<Item = &'a Path>) {
        let mut stays = stays.peekable();
        if let (Some(path), Some(_)) = (&self.path, stays.peek()) {
            let _lost = append(path, stays);
        }
    }

    fn forget(&self, path: &Path) -> io::Result<()> {
        let mut file = open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        match names(&text).any(|path| is_there(&path)) {
            // Another process has added it meanwhile.
            true => Ok(()),
            // Not removed: a process that waits for the lock would write to a file that has no name.
            false => file.set_len(0),
        }
    }
}

fn append<'a>(path: &Path, stays: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let mut file = open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let known = text.len();
    for path in stays {
        let name = path.as_os_str().as_bytes();
        let is_new = text.split(|byte| *byte == 0).all(|known| known != name);
        if is_new && (text.len() + name.len()) as u64 <= MOST_BYTES {
            text.extend_from_slice(name);
            text.push(0);
        }
    }
    // One write: a process that dies leaves whole names, or a part of one that is not there.
    file.write_all(text.get(known..).unwrap_or_default())?;
    file.sync_all()
}

/// The file, locked until it is closed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn names(text: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    let names = text.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name)))
}

/// Only *it is not there* means that the user has removed it.
fn is_there(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    let is_missing = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    !found.is_err_and(|error| is_missing(error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once;

    #[test]
    fn a_name_counts_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, hook) = (dir.path().join("planted"), dir.path().join("caf\u{e9}"));
        let hook = hook.with_file_name(OsStr::from_bytes(b"caf\xe9"));
        fs::write(&hook, "").unwrap();
        let record = Record::at(&file);
        assert_eq!(record.first(), None);
        record.add(once(hook.as_path()));
        record.add(once(hook.as_path()));
        assert_eq!(record.first(), Some(hook.clone()));
        assert_eq!(planted(&file), Some(hook.clone()));
        assert_eq!(
            fs::metadata(&file).unwrap().len(),
            hook.as_os_str().len() as u64 + 1
        );
        fs::remove_file(&hook).unwrap();
        assert_eq!(record.first(), None);
        assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    }

    #[test]
    fn a_name_in_a_directory_that_cannot_be_entered_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("planted");
        // As root every directory can be entered; a name that is too long is an error of the same kind.
        let odd = dir.path().join("x".repeat(300));
        let record = Record::at(&file);
        record.add(once(odd.as_path()));
        assert_eq!(record.first(), Some(odd));
    }

    #[test]
    fn the_record_has_a_limit_and_nothing_is_recorded_without_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("planted");
        let names: Vec<PathBuf> = (0..2000)
            .map(|n| dir.path().join(format!("{n}-{}", "x".repeat(200))))
            .collect();
        Record::at(&file).add(names.iter().map(PathBuf::as_path));
        assert!(fs::metadata(&file).unwrap().len() <= MOST_BYTES + 1);
        let nowhere = Record::at(Path::new(""));
        nowhere.add(names.iter().map(PathBuf::as_path));
        assert_eq!(nowhere.first(), None);
    }
}
