//! Keeps a work tree's git directory in place, and read-only what makes git run other programs.
//!
//! `hooks`, `config`, `config.worktree` and `info/attributes` name programs that the user's next `git status` outside
//! the sandbox would run. They are read-only where they exist; nothing is created. The git directory is pinned by a
//! mount on itself: a mount point cannot be renamed.

use super::{Access, View, What};
use crate::policy::GitConfig;
use std::fs;
use std::path::{Path, PathBuf};

const PROTECTED: &[&str] = &["hooks", "config", "config.worktree", "info/attributes"];

/// In the git directory of a linked work tree: they name the directory whose configuration counts, and the work tree.
const POINTERS: &[&str] = &["commondir", "gitdir"];

/// How deep submodules are looked for: their names may have slashes.
const DEPTH: usize = 6;

/// The file that [`GitConfig::Open`] leaves writable.
const CONFIG: &str = "config";

pub fn protect(view: &mut View, tree: &Path, config: GitConfig) {
    let git = tree.join(".git");
    let Ok(kind) = fs::symlink_metadata(&git) else {
        return;
    };
    if kind.is_dir() {
        pin(view, &git, config);
    } else if kind.is_file() {
        // Where it points decides which configuration git reads.
        let access = Access::Read;
        view.at.insert(git.clone(), What::Pin { access });
        if let Some(real) = linked(&git) {
            let common = common(&real).unwrap_or_else(|| real.clone());
            if !view.is_closed(&common) {
                pin(view, &common, config);
            }
        }
    } else if let Ok(real) = fs::canonicalize(&git)
        && real.starts_with(tree)
    {
        pin(view, &real, config);
    }
}

/// Pins a git directory, with those of its submodules and linked work trees.
fn pin(view: &mut View, git: &Path, config: GitConfig) {
    let names = PROTECTED.iter();
    let names = names.filter(|name| config == GitConfig::Protected || **name != CONFIG);
    let protected: Vec<PathBuf> = names.map(|name| git.join(name)).collect();
    // A symlink cannot be pinned: with one of them, all of the git directory is read-only.
    let has_link = protected.iter().any(|path| path.is_symlink());
    let access = if has_link {
        Access::Read
    } else {
        Access::Write
    };
    let from = git.to_owned();
    let outside = view.writable_around(git).is_none();
    let what = if outside {
        What::Bind { from, access }
    } else {
        What::Pin { access }
    };
    view.at.insert(git.to_owned(), what);
    view.git_dirs.push(git.to_owned());
    for path in protected.into_iter().filter(|path| path.exists()) {
        let access = Access::Read;
        view.at.insert(path, What::Pin { access });
    }
    for dir in ["modules", "worktrees"] {
        inner(view, &git.join(dir), DEPTH);
    }
}

/// The git directories below, each of which has a `HEAD`.
fn inner(view: &mut View, dir: &Path, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if !path.join("HEAD").exists() {
            inner(view, &path, depth);
            continue;
        }
        let protected = PROTECTED.iter().chain(POINTERS);
        let protected = protected.map(|name| path.join(name));
        for path in protected.filter(|path| path.exists() && !path.is_symlink()) {
            let access = Access::Read;
            view.at.insert(path, What::Pin { access });
        }
        inner(view, &path.join("modules"), depth);
    }
}

/// The git directory that a `.git` file names, if that directory names the work tree in turn. Otherwise a tool could
/// write a `.git` file that opens any directory to it at its next call.
fn linked(git: &Path) -> Option<PathBuf> {
    let tree = git.parent()?;
    let text = fs::read_to_string(git).ok()?;
    let real = tree.join(text.strip_prefix("gitdir:")?.trim());
    let real = fs::canonicalize(real).ok()?;
    let back = if let Ok(text) = fs::read_to_string(real.join("gitdir")) {
        fs::canonicalize(real.join(text.trim())).ok()? == git
    } else {
        let config = fs::read_to_string(real.join("config")).ok()?;
        let worktree = config.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "worktree").then(|| value.trim().to_owned())
        })?;
        fs::canonicalize(real.join(worktree)).ok()? == tree
    };
    back.then_some(real)
}

/// The git directory that a linked work tree shares with the main one. It must be above: the file that names it is one
/// that the tool may have written.
fn common(git: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(git.join("commondir")).ok()?;
    let common = fs::canonicalize(git.join(text.trim())).ok()?;
    (git.parent()?.parent()? == common).then_some(common)
}

/// Whether a path lies in a git directory, by its name. For file tools that run under
/// [`restrict_thread`](crate::restrict_thread): they have no reason to write there. The path must be resolved.
pub fn is_protected(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}
