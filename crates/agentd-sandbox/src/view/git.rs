//! Keeps a tree's git directory in place, and read-only what makes git run other programs.
//!
//! What [`PROTECTED`] names is read-only where it exists; nothing is created. The git directory is pinned by a mount on
//! itself: a mount point cannot be renamed. A git directory outside the tree is bound only if the policy names it:
//! nothing that a tool can write decides that.

use super::{Access, View, What};
use crate::git::aside::{directory, has_second_name};
use crate::git::gitlinks::{Listed, WorkTree, listed_around};
use crate::git::outside::OutsideGitDir;
use crate::git::planted::Guarded;
use crate::git::{COMMONDIR, GUARDED, POINTERS, PROTECTED, config};
use crate::policy::{GitConfig, Policy};
use agentd_files::foreign::{self, Links};
use rustix::fs::{CWD, OFlags};
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// How deep submodules are looked for: their names may have slashes.
const DEPTH: usize = 6;
/// How many directories are looked at for submodules.
const MOST_DIRS: usize = 256;
/// How many configurations a tool gets a copy of: each is a mount.
const MOST_COPIES: usize = 16;
const CONFIG_BYTES: u64 = 1024 * 1024;
/// How many submodules are protected by mounts, and how much of their indexes is read.
const MOST_SUBMODULES: usize = 256;
const INDEX_BYTES: u64 = 128 * 1024 * 1024;
/// How many files of one directory are looked at.
const MOST_FILES: usize = 10_000;

/// What a tool may write in a bare repository around its work trees. Anything else in it could be a tree.
const WRITABLE_AROUND: &[&str] = &["logs", "objects", "refs"];
/// What git reads there.
const READABLE_AROUND: &[&str] = &["HEAD", "config", "hooks", "info", "packed-refs", "shallow"];

/// Protects the git directory of a writable tree, and those of the submodules that indexes list, also the index of a
/// repository around the tree: git looks into them when it looks at the tree. `outside` are the git directories of trees.
pub fn protect_with_submodules(view: &mut View, tree: &Path, outside: &[OutsideGitDir]) {
    protect(view, tree);
    let Ok(dir) = directory(CWD, tree, OFlags::PATH) else {
        return;
    };
    let open_outside = |named: &Path| {
        let mut dirs = outside
            .iter()
            .flat_map(|it| it.linked.iter().chain([&it.common]));
        let dir = dirs.find(|dir| *dir == named)?;
        directory(CWD, dir, OFlags::PATH).ok()
    };
    let mut next = VecDeque::from_iter(listed_around(tree));
    next.push_front(PathBuf::new());
    let mut seen = BTreeSet::new();
    let mut left = INDEX_BYTES;
    while let Some(below) = next.pop_front() {
        let is_root = below.as_os_str().is_empty();
        if !seen.insert(below.clone()) || seen.len() > MOST_SUBMODULES {
            continue;
        }
        if !is_root {
            protect(view, &tree.join(&below));
        }
        let work_tree = WorkTree {
            tree: dir.as_fd(),
            root: tree,
            below: &below,
        };
        if let Listed::Links(links) = work_tree.listed(&open_outside, &mut left) {
            next.extend(links);
        }
    }
}

/// The git directory of the tree whose `config` is open: of a linked work tree, the one that counts for it.
pub fn open_configs(policy: &Policy) -> Vec<PathBuf> {
    if policy.git_config != GitConfig::Open {
        return Vec::new();
    }
    let tree = &policy.open_config;
    let outside = policy.git_dirs.iter().filter(|dir| dir.tree == *tree);
    let outside = outside.map(|dir| dir.common.clone());
    outside.chain([tree.join(".git"), tree.clone()]).collect()
}

/// Protects the git directory of a writable tree.
fn protect(view: &mut View, tree: &Path) {
    let git = tree.join(".git");
    match fs::symlink_metadata(&git) {
        Ok(kind) if kind.is_dir() => pin(view, &git),
        Ok(kind) => {
            // Where it points decides which configuration git reads.
            hold(view, git.clone());
            let inside = match kind.is_symlink() {
                true => fs::canonicalize(&git).ok(),
                false => pointed_inside(tree, &git),
            };
            // What the tool can write anyway: this gives it nothing.
            if let Some(inside) = inside.filter(|inside| inside != tree && inside.starts_with(tree))
            {
                pin(view, &inside);
            }
        }
        // A tree that is itself a git directory.
        Err(_) if is_git_dir(tree) => protect_in(view, tree),
        Err(_) => {}
    }
}

impl View {
    /// Whether the tool can write nothing in git directories.
    pub fn is_sealed(&self) -> bool {
        self.git_config == GitConfig::Sealed
    }

    /// Git directories, and files that name one, that were there when the view was planned.
    pub fn known_repositories(&self) -> Vec<PathBuf> {
        let dirs = self.git_dirs.iter().map(|guarded| guarded.dir.clone());
        let pins = self.at.iter().filter(|(path, what)| {
            let mut names = [".git", "modules", "worktrees"].into_iter();
            let is_named = names.any(|name| path.file_name().is_some_and(|it| it == name));
            matches!(what, What::Pin { .. }) && is_named
        });
        dirs.chain(pins.map(|(path, _)| path.clone())).collect()
    }

    /// A file that is read-only in a writable tree and has a second name: a tool could write it by that name, which is no mount.
    pub fn with_second_name(&self) -> Option<PathBuf> {
        let access = Access::Read;
        let held = self.at.iter();
        let held = held.filter(|(_, what)| **what == What::Pin { access });
        let linked = |path: &Path| has_second_name(CWD, path).then(|| path.to_owned());
        let mut found = held.filter_map(|(path, _)| match path.ends_with("hooks") {
            false => linked(path),
            true => {
                let hooks = fs::read_dir(path).into_iter().flatten().flatten();
                let mut hooks = hooks.take(MOST_FILES);
                hooks.find_map(|hook| linked(&hook.path()))
            }
        });
        found.next()
    }

    /// The git directories whose configuration is read-only for the tool. The outermost come first.
    pub fn with_protected_config(&self) -> Vec<PathBuf> {
        let access = Access::Read;
        let dirs = self.git_dirs.iter().map(|guarded| &guarded.dir);
        let mut dirs: Vec<PathBuf> = dirs
            .filter(|dir| self.at.get(&dir.join("config")) == Some(&What::Pin { access }))
            .cloned()
            .collect();
        dirs.sort();
        dirs.truncate(MOST_COPIES);
        dirs
    }
}

/// Binds the git directory outside a tree that the policy names, if the tree is in the view. It is not shown if it is no
/// longer what it was, or is closed.
pub fn open(view: &mut View, dir: &OutsideGitDir) {
    let access = match view.at.get(&dir.tree) {
        Some(What::Bind { .. }) if view.is_sealed() => Access::Read,
        Some(What::Bind { access, .. }) => *access,
        _ => return,
    };
    if view.is_closed(&dir.common) || !dir.is_there() {
        return;
    }
    let is_around = view.at.iter().any(|(at, what)| {
        let is_tree = matches!(what, What::Bind { from, .. } if from == at);
        is_tree && at.starts_with(&dir.common)
    });
    match (access, is_around) {
        (Access::Write, false) => pin(view, &dir.common),
        (Access::Read, false) => bind(view, dir.common.clone(), Access::Read),
        (access, true) => around(view, dir, access),
    }
}

/// A bare repository that contains its work trees: only what git needs of it is shown.
fn around(view: &mut View, dir: &OutsideGitDir, access: Access) {
    let parts = |names: &[&str]| -> Vec<PathBuf> {
        let paths = names.iter().map(|name| dir.common.join(name));
        paths.filter(|path| is_plain(path)).collect()
    };
    for path in parts(READABLE_AROUND) {
        bind(view, path, Access::Read);
    }
    let own = dir.linked.iter().cloned();
    for path in parts(WRITABLE_AROUND).into_iter().chain(own) {
        bind(view, path, access);
    }
    // Git logs what it changes. Where the repository has no logs, they last as long as the sandbox.
    let logs = dir.common.join("logs");
    if fs::symlink_metadata(&logs).is_err() {
        view.at.insert(logs, What::Memory);
    }
    let writable = dir.linked.as_deref().filter(|_| access == Access::Write);
    if let Some(linked) = writable {
        protect_in(view, linked);
    }
    for name in ["objects/info/alternates", "objects/info/http-alternates"] {
        hold_existing(view, dir.common.join(name));
    }
}

/// Whether it exists and is no link.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink())
}

fn is_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

fn bind(view: &mut View, path: PathBuf, access: Access) {
    let from = path.clone();
    view.at.insert(path, What::Bind { from, access });
}

/// Keeps what is at a path of a writable tree in place, read-only.
fn hold(view: &mut View, path: PathBuf) {
    let access = Access::Read;
    view.at.insert(path, What::Pin { access });
}

fn hold_existing(view: &mut View, path: PathBuf) {
    if fs::symlink_metadata(&path).is_ok() {
        hold(view, path);
    }
}

/// Pins a git directory, with those of its submodules and linked work trees.
fn pin(view: &mut View, git: &Path) {
    if view.is_sealed() {
        hold(view, git.to_owned());
        return;
    }
    let access = Access::Write;
    let what = match view.writable_around(git) {
        None => What::Bind {
            from: git.to_owned(),
            access,
        },
        Some(_) => What::Pin { access },
    };
    view.at.insert(git.to_owned(), what);
    protect_in(view, git);
    let mut left = MOST_DIRS;
    for dir in ["modules", "worktrees"] {
        if git.join(dir).is_symlink() {
            hold(view, git.join(dir));
            continue;
        }
        if !inner(view, &git.join(dir), DEPTH, &mut left) {
            // More than can be protected one by one.
            hold(view, git.join(dir));
        }
    }
}

/// Protects the names in one git directory.
fn protect_in(view: &mut View, git: &Path) {
    let is_there = |name: &str| fs::symlink_metadata(git.join(name)).is_ok();
    let is_open = |name: &str| name == "config" && view.open_configs.iter().any(|dir| dir == git);
    let protected = PROTECTED.iter().filter(|name| is_there(name));
    for name in protected.filter(|name| !is_open(name)).collect::<Vec<_>>() {
        hold(view, git.join(name));
        hold_target(view, &git.join(name));
    }
    let is_linked = git.join("gitdir").is_file();
    let pointers = POINTERS.iter().filter(|name| is_linked && is_there(name));
    for name in pointers {
        hold(view, git.join(name));
    }
    // A main git directory has no `commondir`: one that is there was planted.
    let must_stay_absent = |name: &str| !is_there(name) || (!is_linked && name == COMMONDIR);
    let names = GUARDED.iter().filter(|name| must_stay_absent(name));
    // The git directory of a submodule is found twice.
    view.git_dirs.retain(|guarded| guarded.dir != git);
    view.git_dirs.push(Guarded {
        dir: git.to_owned(),
        names: names.copied().collect(),
    });
}

/// What a link leads to is protected like the link, if a tool could write it: `hooks` may be a link into the tree.
fn hold_target(view: &mut View, path: &Path) {
    let target = fs::canonicalize(path).ok().filter(|_| path.is_symlink());
    if let Some(target) = target
        && !view.at.contains_key(&target)
        && view.writable_around(&target).is_some()
    {
        hold(view, target);
    }
}

/// The git directories below, each of which has a `HEAD`. Returns false if there are too many directories.
fn inner(view: &mut View, dir: &Path, depth: usize, left: &mut usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let Some(one_less) = left.checked_sub(1) else {
            return false;
        };
        *left = one_less;
        let path = entry.path();
        let (is_git_dir, below) = match path.join("HEAD").exists() {
            true => (true, path.join("modules")),
            false => (false, path.clone()),
        };
        if is_git_dir {
            protect_in(view, &path);
            hold_work_tree(view, &path);
        }
        if !inner(view, &below, depth, left) {
            return false;
        }
    }
    true
}

/// The user's `git status` looks into the work tree of a submodule: its pointer stays what it is.
fn hold_work_tree(view: &mut View, module: &Path) {
    let config = foreign::read_text(&module.join("config"), Links::NotLast, CONFIG_BYTES);
    let entries = config.ok().and_then(|text| config::parse(&text));
    let named = entries.into_iter().flatten();
    let mut named = named.filter(|entry| entry.is("core", "worktree"));
    let Some(named) = named.next_back().and_then(|entry| entry.value) else {
        return;
    };
    let Ok(tree) = fs::canonicalize(module.join(named)) else {
        return;
    };
    let pointer = tree.join(".git");
    if view.writable_around(&pointer).is_some() {
        hold_existing(view, pointer);
    }
}

/// Whether a path is a git directory, or lies in one, whatever its name is.
pub fn is_in_git_dir(path: &Path) -> bool {
    path.ancestors().any(is_git_dir)
}

/// Whether git takes a directory on the way to a file for a git directory, or would if the file were there.
pub fn makes_git_dir(file: &Path) -> bool {
    let mut below = file;
    for dir in file.ancestors().skip(1) {
        let first = below.file_name();
        let has = |name: &str| {
            let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
            let found = fs::symlink_metadata(dir.join(name));
            first.is_some_and(|first| first == name) || !found.is_err_and(missing)
        };
        if has("HEAD") && (has(COMMONDIR) || (has("objects") && has("refs"))) {
            return true;
        }
        below = dir;
    }
    false
}

/// The git directory inside a tree that its `.git` file names.
fn pointed_inside(tree: &Path, git: &Path) -> Option<PathBuf> {
    const BYTES: u64 = 4200;
    let text = foreign::read_text(git, Links::NotLast, BYTES).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let inside = fs::canonicalize(tree.join(named)).ok()?;
    inside.is_dir().then_some(inside)
}

/// Whether a path lies in a git directory, by its name. For file tools that run under
/// [`restrict_thread`](crate::restrict_thread): they have no reason to write there. The path must be resolved.
pub fn is_protected(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}
