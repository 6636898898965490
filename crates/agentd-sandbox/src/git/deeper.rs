//! Repositories deeper in a tree, found by walks that are bounded in time: the directories nearest to the root come first.
//!
//! A walk before the tool runs tells which repositories are the user's. What a second one finds in addition, when the tool has
//! ended, the tool made.

use super::aside::listed;
use super::bare::Bare;
use super::before::Before;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statat, statx,
};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long one walk may take.
const PATIENCE: Duration = Duration::from_millis(50);
/// By how much the time of a new file may lie before the time at which it is made.
const TICK: Duration = Duration::from_millis(20);

/// The directories of a tree before the tool ran.
#[derive(Debug)]
pub struct Walk {
    /// Each directory that was listed, relative to the tree, with its repository.
    dirs: HashMap<PathBuf, Option<Before>>,
    is_complete: bool,
    /// Since 1970.
    began: Duration,
}

/// A directory that was listed.
struct Listed {
    is_repository: bool,
    /// The names of the directories in it.
    below: Vec<PathBuf>,
}

impl Walk {
    pub fn of(tree: BorrowedFd<'_>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let began = now.unwrap_or_default().saturating_sub(TICK);
        let mut dirs = HashMap::new();
        let is_complete = walk(|below| {
            let found = list(&open(tree, below).ok()?);
            // The root of a tree is protected in other ways.
            let is_deeper = found.is_repository && !below.as_os_str().is_empty();
            let before = is_deeper.then(|| Before::of(tree, below)).flatten();
            dirs.insert(below.to_owned(), before);
            Some(found.below)
        });
        Self {
            dirs,
            is_complete,
            began,
        }
    }

    /// The repositories that are in the tree now, relative to the tree, without the tree itself: those that the tool made, and
    /// those that were there, as they were.
    pub fn found(&self, tree: BorrowedFd<'_>) -> Vec<(PathBuf, Option<&Before>)> {
        let mut made = Vec::new();
        walk(|below| {
            let dir = match open(tree, below) {
                // The tool has taken away the right to list what it made. Git needs only the right to enter it.
                Err(Errno::ACCESS) if self.is_new(tree, below) => listed(tree, below),
                opened => opened,
            };
            let found = list(&dir.ok()?);
            let is_root = below.as_os_str().is_empty();
            let before = self.dirs.get(below).and_then(Option::as_ref);
            let is_looked_at = before.is_some() || self.is_made(tree, below);
            if found.is_repository && !is_root && is_looked_at {
                made.push((below.to_owned(), before));
            }
            Some(found.below)
        });
        made
    }

    /// Whether a directory that is a repository was none before.
    fn is_made(&self, tree: BorrowedFd<'_>, below: &Path) -> bool {
        match self.dirs.get(below) {
            Some(before) => before.is_none(),
            None => self.is_new(tree, below) || self.is_born_since(tree, &below.join(".git")),
        }
    }

    /// Whether a directory was not there before.
    fn is_new(&self, tree: BorrowedFd<'_>, below: &Path) -> bool {
        !self.dirs.contains_key(below) && (self.is_complete || self.is_born_since(tree, below))
    }

    fn is_born_since(&self, tree: BorrowedFd<'_>, below: &Path) -> bool {
        let found = statx(tree, below, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME);
        found.is_ok_and(|found| {
            let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
            let seconds = u64::try_from(found.stx_btime.tv_sec).unwrap_or_default();
            has_birth && Duration::new(seconds, found.stx_btime.tv_nsec) >= self.began
        })
    }
}

/// Visits the directories of a tree as long as there is time; `visit` returns the names of those below. Returns whether
/// all were visited.
fn walk(mut visit: impl FnMut(&Path) -> Option<Vec<PathBuf>>) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut next = VecDeque::from([PathBuf::new()]);
    let mut is_complete = true;
    while let Some(dir) = next.pop_front() {
        if Instant::now() >= until {
            return false;
        }
        match visit(&dir) {
            Some(below) => next.extend(below.into_iter().map(|name| dir.join(name))),
            None => is_complete = false,
        }
    }
    is_complete
}

/// A directory of the tree's own file system, reached without a link.
fn open(tree: BorrowedFd<'_>, below: &Path) -> Result<OwnedFd, Errno> {
    let path = match below.as_os_str().is_empty() {
        true => Path::new("."),
        false => below,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    openat2(tree, path, flags, Mode::empty(), resolve)
}

fn list(dir: &OwnedFd) -> Listed {
    let (mut has_git, mut below) = (false, Vec::new());
    let mut bare = Bare::default();
    for entry in Dir::read_from(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let kind = match entry.file_type() {
            FileType::Unknown => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| {
                    FileType::from_raw_mode(found.st_mode)
                }),
            kind => kind,
        };
        match name.to_bytes() {
            b"." | b".." => {}
            b".git" => has_git = true,
            name => {
                bare.see(name);
                if kind == FileType::Directory {
                    below.push(PathBuf::from(OsStr::from_bytes(name)));
                }
            }
        }
    }
    Listed {
        is_repository: has_git || bare.is_git_dir(),
        below,
    }
}

#[cfg(test)]
mod tests {
    use super::super::aside::directory;
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::os::fd::AsFd as _;

    fn made(walk: &Walk, tree: &OwnedFd) -> Vec<PathBuf> {
        let found = walk.found(tree.as_fd()).into_iter();
        let made = found.filter(|(_, before)| before.is_none());
        made.map(|(path, _)| path).collect()
    }

    #[test]
    fn what_was_made_since_is_found_and_what_was_there_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let make = |path: &str| fs::create_dir_all(root.join(path)).unwrap();
        make("old/.git");
        make("plain/below");
        make(".git/inside/.git");
        let tree = directory(CWD, &root, OFlags::PATH).unwrap();
        let walk = Walk::of(tree.as_fd());
        assert_eq!(made(&walk, &tree), Vec::<PathBuf>::new());
        make("plain/below/.git");
        make("new/deep/.git");
        for name in ["b/objects", "b/refs", "c", "d/objects", "d/refs"] {
            make(name);
        }
        for name in ["b/HEAD", "c/HEAD", "c/commondir"] {
            fs::write(root.join(name), "").unwrap();
        }
        let mut made = made(&walk, &tree);
        made.sort();
        assert_eq!(
            made,
            ["b", "c", "new/deep", "plain/below"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_walk_that_was_not_complete_judges_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("old/.git")).unwrap();
        let tree = directory(CWD, &root, OFlags::PATH).unwrap();
        let mut walk = Walk::of(tree.as_fd());
        walk.dirs.clear();
        walk.is_complete = false;
        let born = |path: &str| {
            let found = fs::metadata(root.join(path)).unwrap();
            found.created().ok()
        };
        // As if the walk had begun a moment after the directory was made.
        walk.began += Duration::from_secs(1);
        assert_eq!(made(&walk, &tree), Vec::<PathBuf>::new());
        walk.began -= Duration::from_secs(3600);
        let made = made(&walk, &tree);
        // Some file systems do not know when a file was made.
        assert_eq!(made.len(), usize::from(born("old").is_some()));
    }
}
