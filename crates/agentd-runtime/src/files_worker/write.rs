//! Gives one path the state that it is to have. Whole or not at all, and idempotent.

use super::state::{hash, name_of, of};
use crate::held_dir::HeldDir;
use agentd_core::digest::sha256;
use agentd_core::event::FileState;
use agentd_core::files::work::{WriteFile, Written};
use agentd_failpoint as failpoint;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// File names may be 255 bytes long; this leaves room for the prefix and suffix of the temporary file.
const NAME_BYTES: usize = 200;

/// `unready` is a part of the name of the temporary file.
pub fn write(file: &WriteFile, unready: &str) -> Written {
    match try_write(file, unready) {
        Ok(written) => written,
        Err(error) => Written::Failed {
            why: error.to_string(),
        },
    }
}

fn try_write(file: &WriteFile, unready: &str) -> io::Result<Written> {
    let path = Path::new(&file.path);
    let name = name_of(path)?;
    let held_dir = match (HeldDir::of(path), &file.target) {
        (Err(error), FileState::Absent) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Written::Done);
        }
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => HeldDir::make(path)?,
        (held_dir, _) => held_dir?,
    };
    let unready = unready_name(name, unready);
    // An earlier process may have left one behind.
    held_dir.remove(&unready)?;
    let Some(now) = of(&held_dir, name)? else {
        return Ok(Written::Changed);
    };
    if now == file.target {
        // The process that wrote it may have ended before the directory was synced.
        held_dir.sync()?;
        return Ok(Written::Done);
    }
    if !is_as_expected(&now, &file.expected) {
        return Ok(Written::Changed);
    }
    let new = New {
        held_dir: &held_dir,
        name,
        unready: &unready,
        expected: &file.expected,
    };
    let written = new.write(file);
    if !matches!(written, Ok(Written::Done)) {
        // Leave no temporary file behind.
        drop(held_dir.remove(&unready));
        return written;
    }
    failpoint::hit_of("before", "sync", "restore");
    held_dir.sync()?;
    Ok(Written::Done)
}

/// The permission bits do not count: a restore sets them.
fn is_as_expected(now: &FileState, expected: &FileState) -> bool {
    match (now, expected) {
        (FileState::File { hash, .. }, FileState::File { hash: known, .. }) => hash == known,
        _ => now == expected,
    }
}

/// What replaces a name of a directory.
struct New<'a> {
    held_dir: &'a HeldDir,
    name: &'a OsStr,
    unready: &'a OsStr,
    /// What is there.
    expected: &'a FileState,
}

impl New<'_> {
    fn write(&self, file: &WriteFile) -> io::Result<Written> {
        match (&file.target, &file.content) {
            (FileState::Absent, _) => {
                failpoint::hit_of("before", "unlink", "restore");
                if !self.is_unchanged()? {
                    return Ok(Written::Changed);
                }
                self.held_dir.remove(self.name)?;
                failpoint::hit_of("after", "unlink", "restore");
                Ok(Written::Done)
            }
            (FileState::Symlink { target }, _) => {
                self.held_dir.link(self.unready, OsStr::new(target))?;
                self.rename()
            }
            (FileState::File { mode, hash }, Some(content)) => {
                let mut content = File::open(content)?;
                if failpoint::injected_bug("restore_in_place") {
                    self.write_in_place(&mut content)?;
                    return Ok(Written::Done);
                }
                self.write_file(&mut content, *mode, hash)
            }
            (FileState::File { mode, hash }, None) => self.set_mode(*mode, hash),
        }
    }

    fn write_file(&self, content: &mut File, mode: u32, wanted: &str) -> io::Result<Written> {
        let old = self.held_dir.look(self.name)?;
        let mut file = self.held_dir.create(self.unready, 0o600)?;
        failpoint::hit_of("before", "write", "restore");
        let (hash, _) = hash(content, |piece| file.write_all(piece))?;
        if hash != wanted {
            return Err(io::Error::other("the content is not the one that was kept"));
        }
        if let Some(old) = old {
            let new = file.metadata()?;
            if (old.st_uid, old.st_gid) != (new.uid(), new.gid()) {
                // Only root can change the owner.
                drop(fchown(&file, Some(old.st_uid), Some(old.st_gid)));
            }
        }
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        failpoint::hit_of("before", "fsync", "restore");
        file.sync_all()?;
        self.rename()
    }

    /// The content stays.
    fn set_mode(&self, mode: u32, wanted: &str) -> io::Result<Written> {
        let is_there = matches!(self.expected, FileState::File { hash, .. } if hash == wanted);
        if !is_there {
            return Err(io::Error::other("the content is missing"));
        }
        if !self.is_unchanged()? {
            return Ok(Written::Changed);
        }
        let file = self.held_dir.open(self.name)?;
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        failpoint::hit_of("before", "fsync", "restore");
        file.sync_all()?;
        Ok(Written::Done)
    }

    fn rename(&self) -> io::Result<Written> {
        failpoint::hit_of("before", "rename", "restore");
        if !self.is_unchanged()? {
            return Ok(Written::Changed);
        }
        self.held_dir.rename(self.unready, self.name)?;
        failpoint::hit_of("after", "rename", "restore");
        Ok(Written::Done)
    }

    /// Looks again: writing a large content takes a while.
    fn is_unchanged(&self) -> io::Result<bool> {
        let now = of(self.held_dir, self.name)?;
        Ok(now.is_some_and(|now| is_as_expected(&now, self.expected)))
    }

    /// An injected bug: a reader can see half of the content.
    fn write_in_place(&self, content: &mut File) -> io::Result<()> {
        let mut file = self.held_dir.truncate(self.name)?;
        failpoint::hit_of("before", "write", "restore");
        let mut is_first = true;
        hash(content, |piece| {
            let (half, rest) = piece.split_at(piece.len() / 2);
            file.write_all(half)?;
            if std::mem::take(&mut is_first) {
                failpoint::hit_of("before", "rename", "restore");
            }
            file.write_all(rest)
        })?;
        failpoint::hit_of("after", "rename", "restore");
        file.sync_all()
    }
}

/// The temporary file beside the target. Its name contains `agentd`.
fn unready_name(name: &OsStr, unready: &str) -> OsString {
    let bytes = name.as_bytes();
    let mut whole = OsString::from(".");
    whole.push(OsString::from_vec(
        bytes
            .get(..bytes.len().min(NAME_BYTES))
            .unwrap_or(bytes)
            .to_vec(),
    ));
    let id = sha256(unready.as_bytes());
    whole.push(format!(".agentd-{}.tmp", id.get(..8).unwrap_or(&id)));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The file is changed after the first look, while the new content is written.
    #[test]
    fn what_is_changed_until_the_rename_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("a");
        let content = dir.path().join("content");
        fs::write(&content, "old").unwrap();
        fs::write(&path, "of the user").unwrap();
        let state = |content: &str| FileState::File {
            mode: 0o644,
            hash: sha256(content.as_bytes()),
        };
        let held_dir = HeldDir::of(&path).unwrap();
        let unready = unready_name(OsStr::new("a"), "op");
        for target in [state("old"), FileState::Absent] {
            let new = New {
                held_dir: &held_dir,
                name: OsStr::new("a"),
                unready: &unready,
                expected: &state("of the agent"),
            };
            let file = WriteFile {
                path: path.display().to_string(),
                expected: state("of the agent"),
                target,
                content: Some(content.clone()),
            };
            assert_eq!(new.write(&file).unwrap(), Written::Changed);
            assert_eq!(fs::read(&path).unwrap(), b"of the user");
        }
    }
}
