//! What a repository deeper in a tree was before a tool ran. Nothing of it is a mount, so that a command can remove or rename
//! it; what the tool changed in it is compared when the tool has ended.

use super::COMMONDIR;
use super::aside::{clear, directory, listed, move_aside};
use super::bare::is_bare;
use super::config;
use super::made::{Changes, names};
use agentd_files::foreign::{self, Links};
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const CONFIG_BYTES: u64 = 1024 * 1024;
const POINTER_BYTES: u64 = 4200;
const CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// How many git directories of submodules and linked work trees are compared, and how deep.
const MOST_DIRS: usize = 256;
const DEPTH: usize = 6;

/// The repository of one directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Before {
    kind: Kind,
    /// The directory, if it looks like a git directory itself.
    itself: Option<GitDir>,
    /// The git directory, and those of submodules and linked work trees in it, by their paths below it.
    dirs: BTreeMap<PathBuf, GitDir>,
}

/// Where its git directory is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// `.git`, by its inode.
    Inside(u64),
    /// A `.git` that is anything else.
    Pointer(Option<String>),
    /// There is no `.git`.
    None,
}

/// What git runs, or takes programs from, in one git directory.
#[derive(Debug, PartialEq, Eq)]
struct GitDir {
    /// `None` for one that is not there.
    configs: [Option<String>; 2],
    /// Each hook, with its inode and the time of its last change.
    hooks: BTreeMap<OsString, (u64, i64, u64)>,
    common: Option<String>,
}

impl Before {
    /// `below` is the directory, relative to the tree. `None` if it is no repository.
    pub fn of(tree: BorrowedFd<'_>, below: &Path) -> Option<Self> {
        let dir = directory(tree, below, OFlags::PATH).ok()?;
        let itself = is_bare(dir.as_fd()).then(|| GitDir::of(&dir));
        let mut dirs = BTreeMap::new();
        let kind = match statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                let git = directory(dir.as_fd(), Path::new(".git"), OFlags::PATH).ok()?;
                see_all(&git, &mut dirs);
                Kind::Inside(found.st_ino)
            }
            Ok(_) => Kind::Pointer(text(dir.as_fd(), Path::new(".git"), POINTER_BYTES)),
            Err(_) if itself.is_some() => {
                see_all(&dir, &mut dirs);
                Kind::None
            }
            Err(_) => return None,
        };
        Some(Self { kind, itself, dirs })
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
        if let (Some(itself), Ok(dir)) = (&now.itself, directory(tree, below, OFlags::PATH)) {
            let path = root.join(below);
            match &self.itself {
                Some(before) => before.restore(itself, dir.as_fd(), &path, changes),
                None => changes.make_harmless(dir.as_fd(), &path),
            }
        }
        let (name, path) = match now.kind {
            Kind::Inside(_) => (below.join(".git"), root.join(below).join(".git")),
            Kind::None => (below.to_owned(), root.join(below)),
            Kind::Pointer(_) => return now.kind == self.kind,
        };
        if now.kind != self.kind {
            return false;
        }
        let Ok(git) = directory(tree, &name, OFlags::PATH) else {
            return false;
        };
        for (below, before) in &self.dirs {
            let inner = match below.as_os_str().is_empty() {
                true => git.try_clone().ok(),
                false => directory(git.as_fd(), below, OFlags::PATH).ok(),
            };
            if let (Some(inner), Some(now)) = (inner, now.dirs.get(below)) {
                before.restore(now, inner.as_fd(), &path.join(below), changes);
            }
        }
        let is_known = |inside: &Path| {
            let below = inside.strip_prefix(&path);
            below.is_ok_and(|below| self.dirs.contains_key(below))
        };
        let mut left = MOST_DIRS;
        let modules = Path::new("modules");
        let bounds = &mut (DEPTH, &mut left);
        changes.modules(git.as_fd(), &path, modules, &is_known, bounds);
        changes.worktrees(git.as_fd(), &path, &is_known);
        true
    }
}

impl GitDir {
    fn of(git: &OwnedFd) -> Self {
        Self {
            configs: CONFIGS.map(|name| text(git.as_fd(), Path::new(name), CONFIG_BYTES)),
            hooks: hooks(git),
            // What cannot be read is there.
            common: statat(git, COMMONDIR, AtFlags::SYMLINK_NOFOLLOW)
                .ok()
                .map(|_| {
                    text(git.as_fd(), Path::new(COMMONDIR), POINTER_BYTES).unwrap_or_default()
                }),
        }
    }

    fn restore(&self, now: &Self, git: BorrowedFd<'_>, path: &Path, changes: &mut Changes) {
        if now.common.is_some() && now.common != self.common {
            let planted = clear(git, path, Path::new(COMMONDIR));
            changes.planted.extend(planted);
        }
        for (name, (before, now)) in CONFIGS.iter().zip(self.configs.iter().zip(&now.configs)) {
            if before != now {
                let before = before.as_deref().and_then(config::parse);
                changes.check_config(git, path, name, &before.unwrap_or_default());
            }
        }
        self.restore_hooks(now, git, path, changes);
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

/// The git directory, and those in it.
fn see_all(git: &OwnedFd, dirs: &mut BTreeMap<PathBuf, GitDir>) {
    dirs.insert(PathBuf::new(), GitDir::of(git));
    for kind in ["modules", "worktrees"] {
        see(git.as_fd(), Path::new(kind), DEPTH, dirs);
    }
}

/// The git directories below `name`: directories with a `HEAD`, at most [`MOST_DIRS`] of them.
fn see(git: BorrowedFd<'_>, name: &Path, depth: usize, dirs: &mut BTreeMap<PathBuf, GitDir>) {
    let Ok(dir) = directory(git, name, OFlags::RDONLY) else {
        return;
    };
    for inner in names(&dir) {
        let below = name.join(&inner);
        let Ok(inner) = directory(dir.as_fd(), Path::new(&inner), OFlags::PATH) else {
            continue;
        };
        if dirs.len() > MOST_DIRS || depth == 0 {
            return;
        }
        if statat(&inner, "HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            dirs.insert(below.clone(), GitDir::of(&inner));
            see(git, &below.join("modules"), depth - 1, dirs);
        } else {
            see(git, &below, depth - 1, dirs);
        }
    }
}

fn text(dir: BorrowedFd<'_>, name: &Path, limit: u64) -> Option<String> {
    foreign::read_text_at(dir, name, Links::Refuse, limit).ok()
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
