//! What a repository deeper in a tree was before a tool ran. Nothing of it is a mount, so that a command can remove or rename
//! it; what the tool changed in it is compared when the tool has ended.

use super::COMMONDIR;
use super::aside::{clear, directory, listed, move_aside};
use super::bare::is_bare;
use super::config;
use super::links::{DEPTH as DEPTH_OF_LINKS, Links};
use super::made::{Changes, names};
use super::outside::plain;
use agentd_files::foreign;
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const CONFIG_BYTES: u64 = 1024 * 1024;
/// Of files up to this size the text is kept: it tells which settings were there.
const TEXT_BYTES: u64 = 64 * 1024;
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
    Pointer {
        content: Content,
        inode: u64,
        /// Where it leads, if it is a link.
        real: Option<PathBuf>,
    },
    /// There is no `.git`.
    None,
}

/// What git runs, or takes programs from, in one git directory.
#[derive(Debug, PartialEq, Eq)]
struct GitDir {
    configs: [Content; 2],
    /// Each hook, with its inode and the time of its last change.
    hooks: BTreeMap<OsString, (u64, i64, u64)>,
    common: Content,
    links: Option<Links>,
    /// Where `core.worktree` leads, without links.
    work_tree: Option<PathBuf>,
}

/// What is in a file that git reads.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Missing,
    Text(String),
    /// What is long or no text: the file, and the time of its last change, which the kernel sets.
    Other(u64, i64, u64),
    /// What cannot be looked at. Nothing is known of it.
    Unknown,
}

impl Content {
    fn of(dir: BorrowedFd<'_>, name: &Path) -> Self {
        let found = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Self::Missing,
            Err(_) => return Self::Unknown,
        };
        let text = foreign::read_text_at(dir, name, foreign::Links::Refuse, TEXT_BYTES);
        match text {
            Ok(text) => Self::Text(text),
            Err(_) => Self::Other(found.st_ino, found.st_ctime, found.st_ctime_nsec),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Other(..) | Self::Unknown => None,
        }
    }
}

impl Before {
    /// `below` is the directory, relative to the tree. `None` if it is no repository.
    pub fn of(tree: BorrowedFd<'_>, root: &Path, below: &Path) -> Option<Self> {
        let dir = directory(tree, below, OFlags::PATH).ok()?;
        let itself = is_bare(dir.as_fd()).then(|| GitDir::of(&dir, &root.join(below)));
        let mut dirs = BTreeMap::new();
        let kind = match statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                let git = directory(dir.as_fd(), Path::new(".git"), OFlags::PATH).ok()?;
                see_all(&git, &root.join(below).join(".git"), &mut dirs);
                Kind::Inside(found.st_ino)
            }
            Ok(found) => Kind::Pointer {
                content: Content::of(dir.as_fd(), Path::new(".git")),
                inode: found.st_ino,
                real: std::fs::canonicalize(root.join(below).join(".git")).ok(),
            },
            Err(_) if itself.is_some() => {
                see_all(&dir, &root.join(below), &mut dirs);
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
        let Some(now) = Self::of(tree, root, below) else {
            return true;
        };
        if now == *self {
            self.accept(root, below, changes);
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
            Kind::Pointer { .. } => return now.kind == self.kind,
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
        self.accept(root, below, changes);
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

impl Before {
    /// What it has, a `.git` file may name.
    fn accept(&self, root: &Path, below: &Path, changes: &mut Changes) {
        let git = match self.kind {
            Kind::Inside(_) => root.join(below).join(".git"),
            Kind::Pointer { .. } | Kind::None => root.join(below),
        };
        for below in self.dirs.keys() {
            // Not `join`, which would end the path with a slash.
            match below.as_os_str().is_empty() {
                true => changes.accept(&git),
                false => changes.accept(&git.join(below)),
            }
        }
    }
}

impl GitDir {
    fn of(git: &OwnedFd, path: &Path) -> Self {
        let git_fd = git.as_fd();
        Self {
            configs: CONFIGS.map(|name| Content::of(git_fd, Path::new(name))),
            hooks: hooks(git),
            common: Content::of(git_fd, Path::new(COMMONDIR)),
            links: Links::of(git_fd, DEPTH_OF_LINKS).ok(),
            work_tree: work_tree(git_fd, path),
        }
    }

    fn restore(&self, now: &Self, git: BorrowedFd<'_>, path: &Path, changes: &mut Changes) {
        if now.common != Content::Missing
            && now.common != self.common
            && let Some(planted) = clear(git, path, Path::new(COMMONDIR))
        {
            changes.plant(planted);
        }
        for (name, (before, now)) in CONFIGS.iter().zip(self.configs.iter().zip(&now.configs)) {
            if before != now {
                let before = before.text().and_then(config::parse);
                changes.check_config(git, path, name, &before.unwrap_or_default());
            }
        }
        if self.work_tree != now.work_tree {
            // The same setting leads elsewhere.
            changes.check_config(git, path, "config", &[]);
        }
        self.restore_hooks(now, git, path, changes);
        if let Some(links) = &self.links {
            changes.clear_links(links, git, path);
        }
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
                moved.for_each(|moved| changes.plant(moved));
            }
            // A link, or anything else instead.
            Err(_) if new.next().is_some() => {
                changes.plant(move_aside(git, path, hooks));
            }
            Err(_) => {}
        }
    }
}

/// The git directory, and those in it.
fn see_all(git: &OwnedFd, path: &Path, dirs: &mut BTreeMap<PathBuf, GitDir>) {
    dirs.insert(PathBuf::new(), GitDir::of(git, path));
    for kind in ["modules", "worktrees"] {
        see(git.as_fd(), path, Path::new(kind), DEPTH, dirs);
    }
}

/// The git directories below `name`: directories with a `HEAD`, at most [`MOST_DIRS`] of them.
fn see(
    git: BorrowedFd<'_>,
    path: &Path,
    name: &Path,
    depth: usize,
    dirs: &mut BTreeMap<PathBuf, GitDir>,
) {
    let Ok(dir) = directory(git, name, OFlags::RDONLY) else {
        return;
    };
    for inner in names(&dir).unwrap_or_default() {
        let below = name.join(&inner);
        let Ok(inner) = directory(dir.as_fd(), Path::new(&inner), OFlags::PATH) else {
            continue;
        };
        if dirs.len() > MOST_DIRS || depth == 0 {
            return;
        }
        if statat(&inner, "HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            dirs.insert(below.clone(), GitDir::of(&inner, &path.join(&below)));
            see(git, path, &below.join("modules"), depth - 1, dirs);
        } else {
            see(git, path, &below, depth - 1, dirs);
        }
    }
}

/// Where the setting `core.worktree` of a git directory leads.
fn work_tree(git: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let config = Path::new("config");
    let text = foreign::read_text_at(git, config, foreign::Links::Refuse, CONFIG_BYTES);
    let entries = config::parse(&text.ok()?)?;
    let mut named = entries.iter().filter(|entry| entry.is("core", "worktree"));
    let named = named.next_back()?.value.as_deref()?;
    std::fs::canonicalize(plain(path, named)?).ok()
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
            // More than can be compared count as changed.
            let run = names(&dir).unwrap_or_else(|| vec![".".into()]);
            let run = run.into_iter().filter(is_run);
            run.for_each(|name| see(dir.as_fd(), name));
        }
        Err(_) => see(git.as_fd(), "hooks".into()),
    }
    found
}
