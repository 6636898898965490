//! Repositories that a tool made: their configuration and hooks are the tool's, and must not count for the user's git.

use super::addresses::{Addresses, Places};
use super::allowed::{is_harmless, name, render};
use super::aside::{Planted, clear, directory, listed, move_aside, separate};
use super::config::{self, Entry};
use super::links::{DEPTH as LINKS_DEPTH, Links as LinksBefore};
use super::outside::plain;
use super::{COMMONDIR, POINTERS};
use agentd_files::foreign::{self, Error, Links};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const CONFIG_BYTES: u64 = 1024 * 1024;
const POINTER_BYTES: u64 = 4200;
/// How deep repositories are looked for in `modules`, and how many directories.
const DEPTH: usize = 6;
const MOST_DIRS: usize = 4096;

/// What was changed in a repository.
#[derive(Debug, Default)]
pub struct Changes {
    pub planted: Vec<Planted>,
    /// Settings that were removed, by their names.
    pub removed: Vec<String>,
    /// The git directories that were there and are guarded, or that were made harmless: only to these may a `.git` file lead.
    checked: HashSet<PathBuf>,
    places: Places,
}

/// How many findings are kept, of each kind. A tool chooses how many there are.
const MOST_FOUND: usize = 1000;

impl Changes {
    pub fn new(places: Places) -> Self {
        Self {
            places,
            ..Self::default()
        }
    }

    pub fn plant(&mut self, planted: Planted) {
        // What stays counts more than what was moved.
        match planted {
            Planted::Moved(_) if self.planted.len() >= MOST_FOUND => {}
            Planted::Stays(_) if self.planted.len() >= 2 * MOST_FOUND => {}
            planted => self.planted.push(planted),
        }
    }

    /// A `.git` file may lead to this git directory.
    pub fn accept(&mut self, path: &Path) {
        self.checked.insert(path.to_owned());
    }

    /// Moves the links away that were not there before.
    pub fn clear_links(&mut self, before: &LinksBefore, git: BorrowedFd<'_>, path: &Path) {
        let mut planted = Vec::new();
        before.clear(git, path, LINKS_DEPTH, &mut planted);
        planted.into_iter().for_each(|planted| self.plant(planted));
    }

    /// The file gets no other name than its own.
    pub fn separate(&mut self, dir: BorrowedFd<'_>, path: &Path, name: &str) {
        if let Some(planted) = separate(dir, path, Path::new(name)) {
            self.plant(planted);
        }
    }

    /// Git looks into no repository from an index that cannot be looked at as a whole.
    pub fn drop_index(&mut self, git: BorrowedFd<'_>, path: &Path) {
        self.plant(move_aside(git, path, Path::new("index")));
    }

    /// Makes a git directory that a tool made harmless.
    pub fn make_harmless(&mut self, git: BorrowedFd<'_>, path: &Path) {
        self.accept(path);
        if let Some(planted) = clear(git, path, Path::new(COMMONDIR)) {
            self.plant(planted);
        }
        self.clear_links(&LinksBefore::default(), git, path);
        // Old forms of remotes: they name addresses.
        for name in ["branches", "remotes"].map(Path::new) {
            if !is_empty(git, name) {
                self.plant(move_aside(git, path, name));
            }
        }
        for name in ["config", "config.worktree"] {
            self.check_config(git, path, name, &[]);
        }
        if has_hooks(git) {
            self.plant(move_aside(git, path, Path::new("hooks")));
        }
        let mut left = MOST_DIRS;
        self.modules(
            git,
            path,
            Path::new("modules"),
            &|_| false,
            &mut (DEPTH, &mut left),
        );
    }

    /// The git directories below `name`, except those that are known.
    pub fn modules(
        &mut self,
        git: BorrowedFd<'_>,
        path: &Path,
        name: &Path,
        is_known: &impl Fn(&Path) -> bool,
        (depth, left): &mut (usize, &mut usize),
    ) {
        let dir = match listed(git, name) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return,
            Err(_) if is_known(&path.join(name)) => return,
            // A link, or anything else in its place.
            Err(_) => return self.plant(move_aside(git, path, name)),
        };
        let path = path.join(name);
        let Some(inside) = names(&dir) else {
            return self.plant(Planted::Stays(path));
        };
        for name in inside {
            let name = Path::new(&name);
            let Ok(inner) = listed(dir.as_fd(), name) else {
                self.check_other(dir.as_fd(), &path, name);
                continue;
            };
            let inside = path.join(name);
            let is_deep = *depth == 0 || **left == 0;
            if is_deep {
                // More than can be looked at.
                self.plant(move_aside(dir.as_fd(), &path, name));
                continue;
            }
            **left -= 1;
            if is_known(&inside) {
                self.accept(&inside);
                let next = &mut (*depth - 1, &mut **left);
                self.modules(inner.as_fd(), &inside, Path::new("modules"), is_known, next);
            } else if statat(&inner, "HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                self.make_harmless(inner.as_fd(), &inside);
            } else {
                let next = &mut (*depth - 1, &mut **left);
                self.modules(dir.as_fd(), &path, name, is_known, next);
            }
        }
    }

    /// Whether a `.git` file may lead to this directory: it was checked, or is the git directory of a submodule or of a linked
    /// work tree, in a repository of the tree, and is made harmless now.
    pub fn follow(&mut self, tree: BorrowedFd<'_>, root: &Path, named: &Path) -> bool {
        if self.checked.contains(named) {
            return true;
        }
        let Ok(below) = named.strip_prefix(root) else {
            return false;
        };
        let Ok(git) = directory(tree, below, OFlags::PATH) else {
            return false;
        };
        let has_common = statat(&git, COMMONDIR, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(has_common, Err(Errno::NOENT)) {
            return self.work_tree(tree, root, below);
        }
        let parts: Vec<_> = below.iter().collect();
        let is_module = |pair: &[&OsStr]| pair[0] == ".git" && pair[1] == "modules";
        let is_in_modules = parts.windows(2).any(is_module);
        if is_in_modules {
            self.make_harmless(git.as_fd(), named);
        }
        is_in_modules
    }

    /// The git directory of a linked work tree, in `worktrees` of another one, which counts for it.
    fn work_tree(&mut self, tree: BorrowedFd<'_>, root: &Path, below: &Path) -> bool {
        let is_in_place = |above: &&Path| above.file_name() == Some(OsStr::new("worktrees"));
        let common = below.parent().filter(is_in_place).and_then(Path::parent);
        let Some(common) = common else { return false };
        let opened = |below: &Path| directory(tree, below, OFlags::PATH);
        let (Ok(git), Ok(main)) = (opened(below), opened(common)) else {
            return false;
        };
        if !has_own_common(git.as_fd()) {
            return false;
        }
        let main_path = root.join(common);
        if !self.checked.contains(&main_path) {
            let is_git = |name| statat(&main, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            if common.file_name() != Some(OsStr::new(".git")) || !is_git("HEAD") {
                return false;
            }
            self.make_harmless(main.as_fd(), &main_path);
        }
        self.accept_work_tree(git.as_fd(), &root.join(below));
        true
    }

    /// The directory of a linked work tree whose `commondir` is in order.
    fn accept_work_tree(&mut self, git: BorrowedFd<'_>, path: &Path) {
        for name in POINTERS {
            self.separate(git, path, name);
        }
        self.clear_links(&LinksBefore::default(), git, path);
        self.check_config(git, path, "config.worktree", &[]);
        self.accept(path);
    }

    /// The directories of linked work trees, except those that are known: each must name this git directory.
    pub fn worktrees(
        &mut self,
        git: BorrowedFd<'_>,
        path: &Path,
        is_known: &impl Fn(&Path) -> bool,
    ) {
        let name = Path::new("worktrees");
        let dir = match listed(git, name) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return,
            Err(_) if is_known(&path.join(name)) => return,
            Err(_) => return self.plant(move_aside(git, path, name)),
        };
        let path = path.join(name);
        let Some(inside) = names(&dir) else {
            return self.plant(Planted::Stays(path));
        };
        for name in inside {
            let (name, inside) = (Path::new(&name), path.join(&name));
            if is_known(&inside) {
                self.accept(&inside);
                continue;
            }
            let Ok(inner) = listed(dir.as_fd(), name) else {
                self.check_other(dir.as_fd(), &path, name);
                continue;
            };
            if has_own_common(inner.as_fd()) {
                self.accept_work_tree(inner.as_fd(), &inside);
            } else {
                // A git directory of its own, if a `.git` file leads to it.
                self.plant(move_aside(dir.as_fd(), &path, name));
            }
        }
    }

    /// A name in place of a git directory: a file has no meaning for git, a link leads elsewhere.
    fn check_other(&mut self, dir: BorrowedFd<'_>, path: &Path, name: &Path) {
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_file = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
        if !found.is_ok_and(|found| is_file(found.st_mode)) {
            self.plant(move_aside(dir, path, name));
        }
    }

    /// Removes the settings that a tool may not make, except those that were there before.
    pub fn check_config(&mut self, git: BorrowedFd<'_>, path: &Path, file: &str, before: &[Entry]) {
        self.separate(git, path, file);
        let text = foreign::read_text_at(git, Path::new(file), Links::Refuse, CONFIG_BYTES);
        let entries = match text {
            Err(Error::NotFound) => return,
            text => text.ok().and_then(|text| config::parse(&text)),
        };
        let Some(entries) = entries else {
            self.plant(move_aside(git, path, Path::new(file)));
            return;
        };
        let addresses = Addresses {
            git: path,
            // What a clone in the tree was made from may be in the tree as well.
            is_made: true,
            places: &self.places,
            entries: &entries,
        };
        let is_harmless = |entry: &Entry| {
            is_harmless(entry) && stays_inside(entry, path) && addresses.allow(entry)
        };
        let is_kept = |entry: &&Entry| before.contains(entry) || is_harmless(entry);
        let (kept, removed): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_kept);
        let kept: Vec<Entry> = kept.into_iter().cloned().collect();
        if removed.is_empty() {
            return;
        }
        self.plant(move_aside(git, path, Path::new(file)));
        let left = MOST_FOUND.saturating_sub(self.removed.len());
        self.removed
            .extend(removed.into_iter().map(name).take(left));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(new) = openat(git, file, flags, Mode::from_raw_mode(0o644)) {
            // A repository without a configuration works, and so does one with a part of it.
            let _partly = std::fs::File::from(new).write_all(render(&kept).as_bytes());
        }
    }
}

/// Whether the setting leads git to no other work tree than one in the repository. Git would write its files there.
fn stays_inside(entry: &Entry, git: &Path) -> bool {
    if name(entry) != "core.worktree" {
        return true;
    }
    let Some(value) = entry.value.as_deref() else {
        return false;
    };
    let mut above = git.ancestors();
    let repository = above.find(|dir| dir.file_name() == Some(OsStr::new(".git")));
    let repository = repository.and_then(Path::parent).unwrap_or(git);
    // One that is not there can become a link.
    let real = plain(git, value).filter(|named| is_real(named));
    real.is_some_and(|real| real.starts_with(repository))
}

/// Whether a directory is there and reached without links.
fn is_real(dir: &Path) -> bool {
    std::fs::canonicalize(dir).is_ok_and(|real| real == dir)
}

/// Whether the directory of a linked work tree belongs to the git directory that it lies in.
fn has_own_common(git: BorrowedFd<'_>) -> bool {
    let common = Path::new(COMMONDIR);
    let common = foreign::read_text_at(git, common, Links::Refuse, POINTER_BYTES);
    common.is_ok_and(|common| common.trim_end() == "../..")
}

/// Whether nothing is there, or an empty directory.
fn is_empty(git: BorrowedFd<'_>, name: &Path) -> bool {
    match listed(git, name) {
        Ok(dir) => names(&dir).is_some_and(|names| names.is_empty()),
        Err(errno) => errno == Errno::NOENT,
    }
}

/// Whether git would run a file of `hooks`. Examples end with `.sample`.
fn has_hooks(git: BorrowedFd<'_>) -> bool {
    let Ok(found) = statat(git, "hooks", AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return true;
    }
    let is_run = |name: &OsString| {
        let extension = Path::new(name).extension();
        extension.is_none_or(|extension| extension != "sample")
    };
    let names = listed(git, Path::new("hooks"))
        .ok()
        .and_then(|hooks| names(&hooks));
    names.is_none_or(|names| names.iter().any(is_run))
}

/// How many names of one directory are looked at.
const MOST_NAMES: usize = 20_000;

/// The names in a directory. `None` if there are more than a repository has: a tool can make any number.
pub fn names(dir: &OwnedFd) -> Option<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in Dir::read_from(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() >= MOST_NAMES {
            return None;
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    Some(names)
}
