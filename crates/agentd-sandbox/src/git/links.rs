//! Links in a git directory. Git writes through links: one that a tool made would lead the user's git to other files.

use super::aside::{Planted, listed, make_accessible, move_aside};
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How deep `logs` and `refs` are looked at.
pub const DEPTH: usize = 32;
/// A git directory with more links of the user's is not held.
const MOST: usize = 4096;
/// Of the links that a tool made, so many are moved aside. More are removed: a list of all would need the memory that the
/// tool chooses.
const MOST_MOVED: usize = 64;

/// The links that were there, with their targets.
#[derive(Debug, Default)]
pub struct Links(BTreeMap<PathBuf, Option<CString>>);

impl Links {
    pub fn of(git: BorrowedFd<'_>, depth: usize) -> Result<Self, Errno> {
        let mut known = BTreeMap::new();
        each(git, depth, &mut |dir, below, name| {
            if known.len() <= MOST {
                known.insert(below.join(name), target(dir, name));
            }
        })?;
        match known.len() > MOST {
            true => Err(Errno::MLINK),
            false => Ok(Self(known)),
        }
    }

    /// Moves the links aside that were not there, or that lead elsewhere now. A directory that cannot be listed may hold some.
    pub fn clear(
        &self,
        git: BorrowedFd<'_>,
        path: &Path,
        depth: usize,
        planted: &mut Vec<Planted>,
    ) {
        let mut left = MOST_MOVED;
        let looked = each(git, depth, &mut |dir, below, name| {
            let known = self.0.get(&below.join(name));
            if known.is_some_and(|known| *known == target(dir, name)) {
                return;
            }
            if left > 0 {
                left -= 1;
                planted.push(move_aside(dir, &path.join(below), Path::new(name)));
                return;
            }
            let mut removed = unlinkat(dir, name, AtFlags::empty());
            if removed.is_err() {
                make_accessible(dir);
                removed = unlinkat(dir, name, AtFlags::empty());
            }
            if removed.is_err() && planted.len() < MOST {
                planted.push(Planted::Stays(path.join(below).join(name)));
            }
        });
        if looked.is_err() {
            planted.push(Planted::Stays(path.to_owned()));
        }
    }
}

fn target(dir: BorrowedFd<'_>, name: &OsStr) -> Option<CString> {
    readlinkat(dir, name, Vec::new()).ok()
}

/// Calls `visit` for each link to which git writes: the entries of the git directory itself, and those in `logs` and `refs`. A tool
/// chooses how many entries there are, so nothing is kept of them. Only *it is not there* means that there is none.
fn each(
    git: BorrowedFd<'_>,
    depth: usize,
    visit: &mut impl FnMut(BorrowedFd<'_>, &Path, &OsStr),
) -> Result<(), Errno> {
    match listed(git, Path::new(".")) {
        Err(Errno::NOENT) => Ok(()),
        top => each_in(&top?, Path::new(""), depth, visit),
    }
}

fn each_in(
    dir: &OwnedFd,
    below: &Path,
    depth: usize,
    visit: &mut impl FnMut(BorrowedFd<'_>, &Path, &OsStr),
) -> Result<(), Errno> {
    let is_top = below.as_os_str().is_empty();
    let mut looked = Ok(());
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let kind = match entry.file_type() {
            FileType::Unknown => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| {
                    FileType::from_raw_mode(found.st_mode)
                }),
            kind => kind,
        };
        let is_written = !is_top || name == "logs" || name == "refs";
        match kind {
            // What was moved aside is nothing to git.
            FileType::Symlink if is_refused(name) => {}
            FileType::Symlink => visit(dir.as_fd(), below, name),
            FileType::Directory if is_written && depth > 0 && name != "." && name != ".." => {
                let inner = match listed(dir.as_fd(), Path::new(name)) {
                    Err(Errno::NOENT) => continue,
                    inner => inner,
                };
                let inside =
                    inner.and_then(|inner| each_in(&inner, &below.join(name), depth - 1, visit));
                // The others are looked at all the same.
                looked = looked.and(inside);
            }
            _ => {}
        }
    }
    looked
}

/// Whether something was moved aside under this name.
fn is_refused(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.windows(b".refused".len())
        .any(|part| part == b".refused")
}
