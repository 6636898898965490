//! Replacing a file atomically: a reader sees either the old content or the new content.

use super::context::Within;
use super::failure::{Failure, said};
use super::{contents, hash, paths};
use crate::held_dir::HeldDir;
use agentd_core::event::FileChange;
use agentd_core::id::CallId;
use agentd_core::message::CallOutcome;
use agentd_core::turn::Finished;
use agentd_failpoint as failpoint;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// File names may be 255 bytes long; this leaves room for the prefix and suffix of the temporary file.
const NAME_BYTES: usize = 200;

/// A file that is to be changed.
pub(super) struct Target {
    /// With links resolved.
    pub path: PathBuf,
    /// As it is shown to the model.
    pub name: String,
    pub git_dirs: GitDirs,
}

/// Whether files in git directories may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitDirs {
    Open,
    Protected,
}

impl Target {
    pub fn of(context: Within<'_>, given: &str) -> Result<Self, Failure> {
        let path = paths::locate(&context.cwd, given)?;
        let name = paths::shown(&context.cwd, &path);
        let is_open = context.confined.is_none()
            || context.escalation.is_everything()
            || failpoint::injected_bug("files_unconfined");
        let git_dirs = match is_open {
            true => GitDirs::Open,
            false => GitDirs::Protected,
        };
        let target = Self::new(&path, name, git_dirs)?;
        if git_dirs == GitDirs::Protected && context.is_in_outside_git_dir(&target.path) {
            return Err(target.protected());
        }
        context.check_covered(context.escalation, &target.path)?;
        Ok(target)
    }

    /// The file at an absolute path without `.` and `..`.
    pub fn new(path: &Path, name: String, git_dirs: GitDirs) -> Result<Self, Failure> {
        let target = Self {
            path: paths::real(path),
            name,
            git_dirs,
        };
        match target.is_protected() {
            true => Err(target.protected()),
            false => Ok(target),
        }
    }

    /// Whether it is in a git directory, or would make one of a directory: git needs no `.git` for that.
    fn is_protected(&self) -> bool {
        let path = &self.path;
        self.git_dirs == GitDirs::Protected
            && (agentd_sandbox::is_protected(path) || agentd_sandbox::makes_git_dir(path))
    }

    fn protected(&self) -> Failure {
        let name = &self.name;
        Failure::new(format!(
            "{name} is in a git directory, or would make its directory one; those are write-protected in the sandbox; use git."
        ))
    }

    /// Checks that the path is a regular file or does not exist.
    pub fn check(&self) -> Result<(), Failure> {
        let text = match fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => return Ok(()),
            Ok(metadata) if metadata.is_dir() => {
                format!("{} is a directory; give the path of a file.", self.name)
            }
            Ok(_) => format!("{} is not a regular file; nothing was written.", self.name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.cannot("access", &error)),
        };
        Err(Failure::new(text))
    }

    pub fn cannot(&self, what: &str, error: &io::Error) -> Failure {
        Failure::io(what, &self.name, error)
    }

    /// The hash of its content; `None` if it does not exist.
    pub fn hash(&self) -> Result<Option<String>, Failure> {
        hash::of_file(&self.path).map_err(|error| self.cannot("read", &error))
    }

    /// Checks that the file has not changed since the start was recorded.
    pub fn check_unchanged(&self, change: &FileChange) -> Result<(), Failure> {
        match self.hash()? == change.before {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    pub fn changed(&self) -> Failure {
        Failure::new(format!(
            "{} was changed by another process in the meantime; nothing was written. Read it again.",
            self.name
        ))
    }

    /// The result of a change that was made: the model knows the new content.
    pub fn written(&self, change: &FileChange, text: String) -> Finished {
        Finished {
            seen: vec![contents::seen(&self.path, change.after.clone())],
            ..said(CallOutcome::Ok, text)
        }
    }

    /// The permission bits; `None` if it does not exist.
    pub fn mode(&self) -> Result<Option<u32>, Failure> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(Some(without_identity(metadata.permissions().mode()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.cannot("access", &error)),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), Failure> {
        remove(&self.path).map_err(|error| self.cannot("delete", &error))
    }

    /// Removes the temporary file that an earlier process may have left behind.
    pub fn remove_unready(&self, call: &CallId) {
        drop(fs::remove_file(unready(&self.path, call)));
    }

    /// Replaces the content. Keeps the mode and, if possible, the owner.
    pub fn replace(&self, call: &CallId, content: &[u8]) -> Result<(), Failure> {
        self.replace_with_mode(call, content, None)
    }

    /// The same; a file that does not exist yet gets these permission bits.
    pub fn replace_with_mode(
        &self,
        call: &CallId,
        content: &[u8],
        mode: Option<u32>,
    ) -> Result<(), Failure> {
        let unready = unready(&self.path, call);
        let outcome = write(&self.path, &unready, content, mode);
        if outcome.is_err() {
            // Leave no temporary file behind.
            drop(fs::remove_file(&unready));
        }
        outcome.map_err(|error| self.cannot("write", &error))?;
        // Another process may have made the rest of a git directory meanwhile.
        if self.is_protected() {
            self.remove()?;
            return Err(self.protected());
        }
        Ok(())
    }
}

/// The temporary file next to the target, which is renamed to it. Its name contains `agentd` and identifies the call.
fn unready(target: &Path, call: &CallId) -> PathBuf {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mut unready = OsString::from(".");
    unready.push(OsString::from_vec(
        name[..name.len().min(NAME_BYTES)].to_vec(),
    ));
    let id = hash::of(call.as_str().as_bytes());
    unready.push(format!(".agentd-{}.tmp", &id[..8]));
    target.with_file_name(unready)
}

fn write(target: &Path, unready: &Path, content: &[u8], new_mode: Option<u32>) -> io::Result<()> {
    let held_dir = HeldDir::of(target)?;
    let (name, unready) = (name(target)?, self::name(unready)?);
    let old = held_dir.look(name)?;
    if old.is_some() {
        held_dir.check_writable(name)?;
    }
    // An earlier process may have left one behind for this call.
    held_dir.remove(unready)?;
    let is_new = old.is_none() && new_mode.is_none();
    let mode = if is_new { 0o666 } else { 0o600 };
    let mut file = held_dir.create(unready, mode)?;
    failpoint::hit_of("before", "write", "file");
    file.write_all(content)?;
    if let Some(old) = old {
        let new = file.metadata()?;
        if (old.st_uid, old.st_gid) != (new.uid(), new.gid()) {
            // Only root can change the owner; for other users only the mode can be kept.
            drop(fchown(&file, Some(old.st_uid), Some(old.st_gid)));
        }
        file.set_permissions(Permissions::from_mode(without_identity(old.st_mode)))?;
    } else if let Some(mode) = new_mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()?;
    failpoint::hit_of("before", "rename", "file");
    held_dir.rename(unready, name)?;
    failpoint::hit_of("after", "rename", "file");
    held_dir.sync()
}

/// The permission bits without those that make a program run as its owner or its group: the kernel clears them too when a
/// file is written.
fn without_identity(mode: u32) -> u32 {
    if failpoint::injected_bug("setuid_allowed") {
        return mode & 0o7777;
    }
    let is_group_executable = mode & 0o010 != 0;
    mode & if is_group_executable { 0o1777 } else { 0o3777 }
}

fn remove(target: &Path) -> io::Result<()> {
    let held_dir = HeldDir::of(target)?;
    let name = name(target)?;
    held_dir.check_writable(name)?;
    failpoint::hit_of("before", "remove", "file");
    held_dir.remove(name)?;
    held_dir.sync()
}

fn name(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| Errno::ISDIR.into())
}

/// Creates the parent directories of a file.
pub(super) fn make_parents(target: &Path) -> io::Result<()> {
    let Some(parent) = target.parent() else {
        return Ok(());
    };
    if parent.is_dir() {
        return Ok(());
    }
    make_parents(parent)?;
    match fs::create_dir(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_dir(parent)
}

fn sync_dir(of: &Path) -> io::Result<()> {
    match of.parent() {
        Some(held_dir) => File::open(held_dir)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{unready, without_identity, write};
    use agentd_core::id::CallId;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    /// Otherwise the model's content would run as the file's owner.
    #[test]
    fn a_file_that_is_replaced_loses_its_setuid_bit() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let path = dir.join("tool");
        fs::write(&path, "user's").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
        write(&path, &dir.join("unready"), b"model's", None).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"model's");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        // Without the right to run it, this bit means locking.
        assert_eq!(without_identity(0o102_644), 0o2644);
    }

    #[test]
    fn what_is_not_ready_is_recognised_by_its_name() {
        let path = unready(Path::new("/a/b.txt"), &CallId::new("call_1"));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(".b.txt.agentd-") && name.ends_with(".tmp"));
        assert_ne!(path, unready(Path::new("/a/b.txt"), &CallId::new("call_2")));
        let long = format!("/a/{}", "x".repeat(255));
        let path = unready(Path::new(&long), &CallId::new("call_1"));
        assert!(path.file_name().unwrap().len() <= 255);
    }
}
