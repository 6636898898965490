//! What a repository deeper in a tree was before a tool ran. Nothing of it is a mount, so that a command can remove or rename
//! it; what the tool changed in it is compared when the tool has ended.

use super::COMMONDIR;
use super::bare::is_bare;
use super::config;
use super::made::{Changes, names};
use super::planted::{clear, directory, listed, move_aside};
use agentd_files::foreign::{self, Links};
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

const CONFIG_BYTES: u64 = 1024 * 1024;
const POINTER_BYTES: u64 = 4200;
const CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// The repository of one directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Before {
    kind: Kind,
    /// `None` for one that is not there.
    configs: [Option<String>; 2],
    /// Each hook, with its inode and the time of its last change.
    hooks: BTreeMap<OsString, (u64, i64, u64)>,
    has_common: bool,
}

/// Where its git directory is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// `.git`, by its inode.
    Inside(u64),
    /// A `.git` that is anything else.
    Pointer(Option<String>),
    /// The directory itself.
    Bare,
}

impl Before {
    /// `below` is the directory, relative to the tree. `None` if it is no repository.
    pub fn of(tree: BorrowedFd<'_>, below: &Path) -> Option<Self> {
        let dir = directory(tree, below, OFlags::PATH).ok()?;
        let (kind, git) = match statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                let git = directory(dir.as_fd(), Path::new(".git"), OFlags::PATH).ok()?;
                (Kind::Inside(found.st_ino), git)
            }
            Ok(_) => {
                let pointer = Path::new(".git");
                let pointer = foreign::read_text_at(&dir, pointer, Links::Refuse, POINTER_BYTES);
                let kind = Kind::Pointer(pointer.ok());
                return Some(Self::without(kind));
            }
            Err(_) if is_bare(dir.as_fd()) => (Kind::Bare, dir),
            Err(_) => return None,
        };
        let config = |name: &str| {
            let text = foreign::read_text_at(&git, Path::new(name), Links::Refuse, CONFIG_BYTES);
            text.ok()
        };
        let is_there = |name: &str| statat(&git, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        Some(Self {
            kind,
            configs: CONFIGS.map(config),
            hooks: hooks(&git),
            has_common: is_there(COMMONDIR),
        })
    }

    const fn without(kind: Kind) -> Self {
        Self {
            kind,
            configs: [None, None],
            hooks: BTreeMap::new(),
            has_common: false,
        }
    }

    /// Takes back what the tool did to the repository since. Returns false if it is another one now.
    pub fn restore(
        &self,
        tree: BorrowedFd<'_>,
        root: &Path,
        below: &Path,
        changes: &mut Changes,
    ) -> bool {
        let Some(now) = Self::of(tree, below) else {
            return true;
        };
        if now == *self {
            return true;
        }
        let (name, path) = match now.kind {
            Kind::Inside(_) => (below.join(".git"), root.join(below).join(".git")),
            Kind::Bare => (below.to_owned(), root.join(below)),
            Kind::Pointer(_) => return false,
        };
        if now.kind != self.kind {
            return false;
        }
        let Ok(git) = directory(tree, &name, OFlags::PATH) else {
            return false;
        };
        if now.has_common && !self.has_common {
            let planted = clear(git.as_fd(), &path, Path::new(COMMONDIR));
            changes.planted.extend(planted);
        }
        for (name, (before, now)) in CONFIGS.iter().zip(self.configs.iter().zip(&now.configs)) {
            if before != now {
                let before = before.as_deref().and_then(config::parse);
                changes.check_config(git.as_fd(), &path, name, &before.unwrap_or_default());
            }
        }
        self.restore_hooks(&now, git.as_fd(), &path, changes);
        true
    }

    /// Moves the hooks away that the tool made or changed.
    fn restore_hooks(&self, now: &Self, git: BorrowedFd<'_>, path: &Path, changes: &mut Changes) {
        let hooks = Path::new("hooks");
        let found = now.hooks.iter();
        let mut new = found.filter(|(name, id)| self.hooks.get(*name) != Some(id));
        match listed(git, hooks) {
            Ok(dir) => {
                let new = new.map(|(name, _)| Path::new(name));
                let moved = new.map(|name| move_aside(dir.as_fd(), &path.join(hooks), name));
                changes.planted.extend(moved.collect::<Vec<_>>());
            }
            // A link, or anything else instead.
            Err(_) if new.next().is_some() => {
                changes.planted.push(move_aside(git, path, hooks));
            }
            Err(_) => {}
        }
    }
}

/// The hooks that git would run. What is no directory counts as one hook.
fn hooks(git: &OwnedFd) -> BTreeMap<OsString, (u64, i64, u64)> {
    let mut found = BTreeMap::new();
    let mut see = |dir: BorrowedFd<'_>, name: OsString| {
        if let Ok(stat) = statat(dir, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW) {
            let changed = (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
            found.insert(name, changed);
        }
    };
    match directory(git.as_fd(), Path::new("hooks"), OFlags::RDONLY) {
        Ok(dir) => {
            let is_run = |name: &OsString| Path::new(name).extension().is_none();
            let run = names(&dir).into_iter().filter(is_run);
            run.for_each(|name| see(dir.as_fd(), name));
        }
        Err(_) => see(git.as_fd(), "hooks".into()),
    }
    found
}
