//! Gives paths the states that they are to have. Each is whole or not at all at any moment, and the work is idempotent.
//!
//! Several files are written together: all new contents are on disk before the first rename, and then each directory is
//! synced once.

use super::state::{hash, name_of, of};
use crate::held_dir::HeldDir;
use agentd_core::digest::sha256;
use agentd_core::event::FileState;
use agentd_core::files::work::{WriteFile, Written};
use agentd_failpoint as failpoint;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use std::thread;

/// File names may be 255 bytes long; this leaves room for the prefix and suffix of the temporary file.
const NAME_BYTES: usize = 200;
/// Files that are written together. Each needs two descriptors.
const BATCH: usize = 64;
/// Their contents are on disk twice until they are renamed, so that there is a limit for them too.
const BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// The file system commits what several threads sync at the same time at once.
const SYNCERS: usize = 8;

/// The next files that are written together; none if there are no more.
pub fn batch(files: &[WriteFile]) -> &[WriteFile] {
    let mut bytes: u64 = 0;
    let fits = |file: &&WriteFile| {
        let size = file.content.as_ref().and_then(|at| fs::metadata(at).ok());
        let is_first = bytes == 0;
        bytes = bytes.saturating_add(size.map_or(0, |content| content.len()));
        is_first || bytes <= BATCH_BYTES
    };
    let fitting = files.iter().take(BATCH).take_while(fits).count();
    files.get(..fitting.max(1)).unwrap_or(files)
}

/// Writes files together. `unready` is a part of the names of the temporary files.
pub fn write(files: &[WriteFile], unready: &str) -> Vec<Written> {
    let mut steps: Vec<Step<'_>> = files
        .iter()
        .map(|file| begin(file, unready).unwrap_or_else(|error| failed(&error)))
        .collect();
    sync_contents(&mut steps);
    let replaced = steps.into_iter().map(|step| match step {
        Step::Ready(new) => new.replace(),
        other => other,
    });
    let mut steps: Vec<Step<'_>> = replaced.collect();
    sync_dirs(&mut steps);
    let outcomes = steps.into_iter().map(|step| match step {
        Step::Over(written) => written,
        Step::Replaced(_) => Written::Done,
        Step::Ready(_) => Written::Failed {
            why: "it was not written".to_owned(),
        },
    });
    outcomes.collect()
}

/// How far one file is.
enum Step<'a> {
    /// What is to replace it is there, beside it.
    Ready(New<'a>),
    /// It is what it is to be. The directory is not synced yet.
    Replaced(HeldDir),
    Over(Written),
}

fn failed(error: &io::Error) -> Step<'static> {
    Step::Over(Written::Failed {
        why: error.to_string(),
    })
}

fn begin<'a>(file: &'a WriteFile, unready: &str) -> io::Result<Step<'a>> {
    let path = Path::new(&file.path);
    let name = name_of(path)?;
    let held_dir = match (HeldDir::of(path), &file.target) {
        (Err(error), FileState::Absent) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Step::Over(Written::Done));
        }
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => HeldDir::make(path)?,
        (held_dir, _) => held_dir?,
    };
    let unready = unready_name(name, unready);
    // An earlier process may have left one behind.
    held_dir.remove(&unready)?;
    let Some(now) = of(&held_dir, name)? else {
        return Ok(Step::Over(Written::Changed));
    };
    if now == file.target {
        // The process that wrote it may have ended before the directory was synced.
        return Ok(Step::Replaced(held_dir));
    }
    if !is_as_expected(&now, &file.expected) {
        return Ok(Step::Over(Written::Changed));
    }
    let new = New {
        held_dir,
        name: name.to_owned(),
        unready,
        expected: &file.expected,
        how: How::Rename(None),
    };
    Ok(new.prepare(file))
}

/// Syncs the contents of the new files. One that cannot be synced does not replace anything.
fn sync_contents(steps: &mut [Step<'_>]) {
    let files = steps.iter().enumerate().filter_map(|(n, step)| match step {
        Step::Ready(New {
            how: How::Rename(Some(file)),
            ..
        }) => Some((n, file)),
        _ => None,
    });
    let files: Vec<(usize, &File)> = files.collect();
    for _ in &files {
        failpoint::hit_of("before", "fsync", "restore");
    }
    let sync = |part: &[(usize, &File)]| {
        let failed = part.iter().filter_map(|(n, file)| {
            let error = file.sync_all().err()?;
            Some((*n, error.to_string()))
        });
        failed.collect::<Vec<_>>()
    };
    let each = files.len().div_ceil(SYNCERS).max(1);
    let failed: Vec<(usize, String)> = thread::scope(|scope| {
        let parts = files.chunks(each).map(|part| {
            let thread = thread::Builder::new().spawn_scoped(scope, move || sync(part));
            (part, thread.ok())
        });
        let parts: Vec<_> = parts.collect();
        let failed = parts.into_iter().flat_map(|(part, thread)| {
            let synced = thread.and_then(|thread| thread.join().ok());
            synced.unwrap_or_else(|| sync(part))
        });
        failed.collect()
    });
    for (n, why) in failed {
        if let Some(step) = steps.get_mut(n) {
            if let Step::Ready(new) = step {
                drop(new.held_dir.remove(&new.unready));
            }
            *step = Step::Over(Written::Failed { why });
        }
    }
}

/// Syncs each directory once.
fn sync_dirs(steps: &mut [Step<'_>]) {
    let mut synced: BTreeMap<(u64, u64), Result<(), String>> = BTreeMap::new();
    for step in steps {
        let Step::Replaced(held_dir) = step else {
            continue;
        };
        let sync = || {
            failpoint::hit_of("before", "sync", "restore");
            held_dir.sync().map_err(|error| error.to_string())
        };
        let done = match held_dir.id() {
            Ok(id) => synced.entry(id).or_insert_with(sync).clone(),
            Err(_) => sync(),
        };
        if let Err(why) = done {
            *step = Step::Over(Written::Failed { why });
        }
    }
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
    held_dir: HeldDir,
    name: OsString,
    /// The name of the temporary file.
    unready: OsString,
    /// What is there.
    expected: &'a FileState,
    how: How,
}

enum How {
    /// The temporary file or symlink gets the name. The content of the file must be synced before.
    Rename(Option<File>),
    Remove,
}

impl<'a> New<'a> {
    /// Does everything that changes nothing at the path itself.
    fn prepare(mut self, file: &WriteFile) -> Step<'a> {
        let prepared = match (&file.target, &file.content) {
            (FileState::Absent, _) => Ok(Prepared::Ready(How::Remove)),
            (FileState::Symlink { target }, _) => {
                let linked = self.held_dir.link(&self.unready, OsStr::new(target));
                linked.map(|()| Prepared::Ready(How::Rename(None)))
            }
            (FileState::File { mode, hash }, Some(content)) => {
                self.prepare_file(content, *mode, hash)
            }
            (FileState::File { mode, hash }, None) => self.set_mode(*mode, hash),
        };
        match prepared {
            Ok(Prepared::Ready(how)) => {
                self.how = how;
                Step::Ready(self)
            }
            Ok(Prepared::Replaced) => Step::Replaced(self.held_dir),
            Ok(Prepared::Changed) => Step::Over(Written::Changed),
            Err(error) => self.give_up(&error),
        }
    }

    /// Leaves no temporary file behind.
    fn give_up(&self, error: &io::Error) -> Step<'a> {
        drop(self.held_dir.remove(&self.unready));
        failed(error)
    }

    /// Makes the change. Looks again before: to write large contents takes a while.
    fn replace(self) -> Step<'a> {
        let point = match self.how {
            How::Rename(_) => "rename",
            How::Remove => "unlink",
        };
        failpoint::hit_of("before", point, "restore");
        match self.is_unchanged() {
            Ok(true) => {}
            Ok(false) => {
                drop(self.held_dir.remove(&self.unready));
                return Step::Over(Written::Changed);
            }
            Err(error) => return self.give_up(&error),
        }
        let replaced = match self.how {
            How::Rename(_) => self.held_dir.rename(&self.unready, &self.name),
            How::Remove => self.held_dir.remove(&self.name),
        };
        if let Err(error) = replaced {
            return self.give_up(&error);
        }
        failpoint::hit_of("after", point, "restore");
        Step::Replaced(self.held_dir)
    }

    fn prepare_file(&self, content: &Path, mode: u32, hash: &str) -> io::Result<Prepared> {
        let mut content = File::open(content)?;
        if failpoint::injected_bug("restore_in_place") {
            self.write_in_place(&mut content)?;
            return Ok(Prepared::Replaced);
        }
        let file = self.write_file(&mut content, mode, hash)?;
        Ok(Prepared::Ready(How::Rename(Some(file))))
    }

    fn write_file(&self, content: &mut File, mode: u32, wanted: &str) -> io::Result<File> {
        let old = self.held_dir.look(&self.name)?;
        let mut file = self.held_dir.create(&self.unready, 0o600)?;
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
        Ok(file)
    }

    /// The content stays.
    fn set_mode(&self, mode: u32, wanted: &str) -> io::Result<Prepared> {
        let is_there = matches!(self.expected, FileState::File { hash, .. } if hash == wanted);
        if !is_there {
            return Err(io::Error::other("the content is missing"));
        }
        if !self.is_unchanged()? {
            return Ok(Prepared::Changed);
        }
        let file = self.held_dir.open(&self.name)?;
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        failpoint::hit_of("before", "fsync", "restore");
        file.sync_all()?;
        Ok(Prepared::Replaced)
    }

    fn is_unchanged(&self) -> io::Result<bool> {
        let now = of(&self.held_dir, &self.name)?;
        Ok(now.is_some_and(|now| is_as_expected(&now, self.expected)))
    }

    /// An injected bug: a reader can see half of the content.
    fn write_in_place(&self, content: &mut File) -> io::Result<()> {
        let mut file = self.held_dir.truncate(&self.name)?;
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

/// How far the preparation has come.
enum Prepared {
    Ready(How),
    Replaced,
    Changed,
}

/// The temporary file beside the target. Its name contains `agentd`, and is another one for each file of a directory.
fn unready_name(name: &OsStr, unready: &str) -> OsString {
    let bytes = name.as_bytes();
    let mut whole = OsString::from(".");
    whole.push(OsString::from_vec(
        bytes
            .get(..bytes.len().min(NAME_BYTES))
            .unwrap_or(bytes)
            .to_vec(),
    ));
    let id = sha256(&[unready.as_bytes(), bytes].join(&b'/'));
    whole.push(format!(".agentd-{}.tmp", id.get(..8).unwrap_or(&id)));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is changed after the first look, while the new content is written.
    #[test]
    fn what_is_changed_until_the_rename_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("a");
        let content = dir.path().join("content");
        fs::write(&content, "old").unwrap();
        let state = |content: &str| FileState::File {
            mode: 0o644,
            hash: sha256(content.as_bytes()),
        };
        for target in [state("old"), FileState::Absent] {
            let file = WriteFile {
                path: path.display().to_string(),
                expected: state("of the agent"),
                target,
                content: Some(content.clone()),
            };
            fs::write(&path, "of the agent").unwrap();
            let Ok(Step::Ready(new)) = begin(&file, "op") else {
                panic!("not prepared");
            };
            fs::write(&path, "of the user").unwrap();
            let step = new.replace();
            assert!(matches!(step, Step::Over(Written::Changed)));
            assert_eq!(fs::read(&path).unwrap(), b"of the user");
        }
    }
}
