//! Repositories that a tool made: their configuration and hooks are the tool's, and must not count for the user's git.

use super::COMMONDIR;
use super::allowed::{is_harmless, name, render};
use super::aside::{Planted, clear, directory, listed, move_aside};
use super::config::{self, Entry};
use super::outside::plain;
use agentd_files::foreign::{self, Error, Links};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

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
}

impl Changes {
    /// Makes a git directory that a tool made harmless.
    pub fn make_harmless(&mut self, git: BorrowedFd<'_>, path: &Path) {
        self.planted.extend(clear(git, path, Path::new(COMMONDIR)));
        for name in ["config", "config.worktree"] {
            self.check_config(git, path, name, &[]);
        }
        if has_hooks(git) {
            self.planted.push(move_aside(git, path, Path::new("hooks")));
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
            Err(_) => return self.planted.push(move_aside(git, path, name)),
        };
        let path = path.join(name);
        for name in names(&dir) {
            let name = Path::new(&name);
            let Ok(inner) = listed(dir.as_fd(), name) else {
                self.check_other(dir.as_fd(), &path, name);
                continue;
            };
            let inside = path.join(name);
            let is_deep = *depth == 0 || **left == 0;
            if is_deep {
                // More than can be looked at.
                self.planted.push(move_aside(dir.as_fd(), &path, name));
                continue;
            }
            **left -= 1;
            if is_known(&inside) {
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

    /// Makes harmless what a `.git` file names, if that is the git directory of a submodule or of a linked work tree, in a
    /// repository of the tree. Returns whether it is.
    pub fn follow(&mut self, tree: BorrowedFd<'_>, root: &Path, named: &Path) -> bool {
        let Ok(below) = named.strip_prefix(root) else {
            return false;
        };
        let parts: Vec<_> = below.iter().collect();
        let mut pairs = parts.windows(2).filter(|pair| pair[0] == ".git");
        let kind = pairs.next().map(|pair| pair[1]);
        let Ok(git) = directory(tree, below, OFlags::PATH) else {
            return false;
        };
        match kind {
            Some(kind) if kind == "modules" => self.make_harmless(git.as_fd(), named),
            Some(kind) if kind == "worktrees" => return self.work_tree(git.as_fd(), named),
            _ => return false,
        }
        true
    }

    /// The git directory of a linked work tree. Returns false if it is none, or names another repository.
    fn work_tree(&mut self, git: BorrowedFd<'_>, path: &Path) -> bool {
        let common = Path::new(COMMONDIR);
        let common = foreign::read_text_at(git, common, Links::Refuse, POINTER_BYTES);
        let is_own = common.is_ok_and(|common| common.trim_end() == "../..");
        if is_own {
            self.check_config(git, path, "config.worktree", &[]);
        }
        is_own
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
            Err(_) => return self.planted.push(move_aside(git, path, name)),
        };
        let path = path.join(name);
        for name in names(&dir) {
            let (name, inside) = (Path::new(&name), path.join(&name));
            if is_known(&inside) {
                continue;
            }
            let Ok(inner) = listed(dir.as_fd(), name) else {
                self.check_other(dir.as_fd(), &path, name);
                continue;
            };
            let common = Path::new(COMMONDIR);
            let common = foreign::read_text_at(&inner, common, Links::Refuse, POINTER_BYTES);
            match common {
                Ok(common) if common.trim_end() == "../.." => {
                    self.check_config(inner.as_fd(), &inside, "config.worktree", &[]);
                }
                // Git does not look at it.
                Err(Error::NotFound) => {}
                _ => self.planted.push(move_aside(dir.as_fd(), &path, name)),
            }
        }
    }

    /// A name in place of a git directory: a file has no meaning for git, a link leads elsewhere.
    fn check_other(&mut self, dir: BorrowedFd<'_>, path: &Path, name: &Path) {
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_file = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
        if !found.is_ok_and(|found| is_file(found.st_mode)) {
            self.planted.push(move_aside(dir, path, name));
        }
    }

    /// Removes the settings that a tool may not make, except those that were there before.
    pub fn check_config(&mut self, git: BorrowedFd<'_>, path: &Path, file: &str, before: &[Entry]) {
        let text = foreign::read_text_at(git, Path::new(file), Links::Refuse, CONFIG_BYTES);
        let entries = match text {
            Err(Error::NotFound) => return,
            text => text.ok().and_then(|text| config::parse(&text)),
        };
        let Some(entries) = entries else {
            self.planted.push(move_aside(git, path, Path::new(file)));
            return;
        };
        let is_kept = |entry: &Entry| {
            before.contains(entry) || (is_harmless(entry) && stays_inside(entry, path))
        };
        let (kept, removed): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_kept);
        if removed.is_empty() {
            return;
        }
        self.planted.push(move_aside(git, path, Path::new(file)));
        self.removed.extend(removed.iter().map(name));
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
    let Some(named) = plain(git, value) else {
        return false;
    };
    let is_link = std::fs::canonicalize(&named).is_ok_and(|real| real != named);
    named.starts_with(repository) && !is_link
}

/// Whether git would run a file of `hooks`. Examples end with `.sample`.
fn has_hooks(git: BorrowedFd<'_>) -> bool {
    let Ok(found) = statat(git, "hooks", AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return true;
    }
    match listed(git, Path::new("hooks")) {
        Ok(hooks) => names(&hooks).iter().any(|name| {
            let name = Path::new(name);
            name.extension()
                .is_none_or(|extension| extension != "sample")
        }),
        Err(_) => true,
    }
}

pub fn names(dir: &OwnedFd) -> Vec<std::ffi::OsString> {
    use std::os::unix::ffi::OsStrExt as _;
    let entries = Dir::read_from(dir).into_iter().flatten().flatten();
    let names =
        entries.map(|entry| std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}
