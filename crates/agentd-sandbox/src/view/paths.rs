//! Paths of a policy, without symlinks.

use crate::error::{Error, Result};
use crate::policy::Policy;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub fn refuse(path: &Path, why: &'static str) -> Error {
    let path = path.to_owned();
    Error::Policy { path, why }
}

pub fn required(path: &Path) -> Result<PathBuf> {
    resolve(path)?.ok_or_else(|| refuse(path, "it does not exist"))
}

/// The path of a tree without symlinks. One that was checked is taken as it is: what a link that another process makes leads to
/// must not count anywhere, and is refused when the tree is mounted.
pub fn tree_path(policy: &Policy, tree: &Path) -> Option<PathBuf> {
    match policy.without_links.iter().any(|checked| checked == tree) {
        true => fs::symlink_metadata(tree).is_ok().then(|| tree.to_owned()),
        false => fs::canonicalize(tree).ok(),
    }
}

/// The path without symlinks; none if it does not exist.
pub fn resolve(path: &Path) -> Result<Option<PathBuf>> {
    if !path.is_absolute() {
        return Err(refuse(path, "its path is not absolute"));
    }
    match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            io::ErrorKind::PermissionDenied => Err(refuse(path, "the user may not read it")),
            _ => Err(refuse(path, "it cannot be resolved")),
        },
    }
}
