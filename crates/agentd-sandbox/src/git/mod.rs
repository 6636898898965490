//! Git repositories: which git directory belongs to a tree, what of it tools may change, and what they left in it.
//!
//! A tool writes its tree, so nothing in a tree is evidence of what lies outside. What git does in a repository depends
//! on files that name programs; a tool must be able to change none of them. The names are those of git 2.47
//! (gitrepository-layout, git-config, githooks).

pub(crate) mod addresses;
pub(crate) mod after;
mod allowed;
pub(crate) mod aside;
mod bare;
mod before;
pub(crate) mod config;
pub(crate) mod config_copy;
mod deeper;
pub(crate) mod gitlinks;
mod index;
mod links;
mod made;
pub(crate) mod outside;
pub(crate) mod planted;
pub(crate) mod record;
pub(crate) mod refused;

/// What makes git run programs, or read another directory. Read-only in the view where it exists.
pub(crate) const PROTECTED: &[&str] = &[
    "branches",
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "remotes",
];

/// In the git directory of a linked work tree: they name the directory whose configuration counts, and the work tree.
pub(crate) const POINTERS: &[&str] = &[COMMONDIR, "gitdir"];

/// A main git directory has no such file. With one, git reads its configuration from another directory.
pub(crate) const COMMONDIR: &str = "commondir";

/// What must not appear in a git directory while a tool can write to it. It cannot be made read-only where it does not
/// exist. `branches` and `remotes` name addresses: git pushes to one on this machine by running the hooks that are there.
pub(crate) const GUARDED: &[&str] = &[
    COMMONDIR,
    "branches",
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "remotes",
];
