//! Links in a git directory. Git writes through links: one that a tool made would lead the user's git to other files.

use super::aside::{LINK_ASIDE, Planted, listed, make_accessible, move_link_aside};
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
#[derive(Debug, Default, PartialEq, Eq)]
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
                planted.push(move_link_aside(dir, &path.join(below), Path::new(name)));
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

/// Calls `visit` for each link to which git writes: the entries of the git directory itself, of `objects` and `info`, and those in `logs` and `refs`. A tool
/// chooses how many entries there are, so nothing is kept of them. Only *it is not there* means that there is none.
fn each(
    git: BorrowedFd<'_>,
    depth: usize,
    visit: &mut impl FnMut(BorrowedFd<'_>, &Path, &OsStr),
) -> Result<(), Errno> {
    match listed(git, Path::new(".")) {
        Err(Errno::NOENT) => Ok(()),
        top => each_in(&top?, Path::new(""), Depth::Top(depth), visit),
    }
}

/// What is looked at in a directory.
#[derive(Clone, Copy)]
enum Depth {
    /// The git directory: its own entries, and directories to which git writes, so deep.
    Top(usize),
    /// Everything below. A directory that is deeper counts as a link: git would write there too.
    Whole(usize),
    /// Its own entries only.
    Flat,
}

impl Depth {
    fn below(self, name: &OsStr) -> Option<Self> {
        match (self, name.as_bytes()) {
            (_, b"." | b"..") | (Self::Flat | Self::Top(0), _) => None,
            (Self::Top(depth), b"logs" | b"refs") => Some(Self::Whole(depth)),
            // `git gc` removes what is in them.
            (Self::Top(_), b"objects" | b"info") => Some(Self::Flat),
            (Self::Top(_), _) => None,
            (Self::Whole(depth), _) => Some(Self::Whole(depth.saturating_sub(1))),
        }
    }
}

fn each_in(
    dir: &OwnedFd,
    below: &Path,
    depth: Depth,
    visit: &mut impl FnMut(BorrowedFd<'_>, &Path, &OsStr),
) -> Result<(), Errno> {
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
        match (kind, depth.below(name)) {
            // What was moved aside is nothing to git.
            (FileType::Symlink | FileType::Directory, _) if is_refused(name) => {}
            (FileType::Symlink, _) => visit(dir.as_fd(), below, name),
            (FileType::Directory, Some(_)) if matches!(depth, Depth::Whole(0)) => {
                visit(dir.as_fd(), below, name);
            }
            (FileType::Directory, Some(next)) => {
                let inner = match listed(dir.as_fd(), Path::new(name)) {
                    Err(Errno::NOENT) => continue,
                    inner => inner,
                };
                let inside =
                    inner.and_then(|inner| each_in(&inner, &below.join(name), next, visit));
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
    let (name, ending) = (name.as_bytes(), LINK_ASIDE.as_bytes());
    name.windows(ending.len()).any(|part| part == ending)
}
