//! Repositories deeper in a tree, found by walks that are bounded in time: the directories nearest to the root come first.
//!
//! A walk before the tool runs tells which repositories are the user's. What a second one finds in addition, when the tool has
//! ended, the tool made.

use super::aside::listed;
use super::bare::is_bare;
use super::before::Before;
use super::made::names;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statat, statx,
};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long one walk may take.
const PATIENCE: Duration = Duration::from_millis(50);
/// What git runs programs because of, in a repository.
const CHANGED: [&str; 5] = [
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/hooks",
    "commondir",
];
/// How many entries of one directory are read, and how many directories wait to be visited. A tool can make any number.
const MOST: usize = 100_000;
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
    is_complete: bool,
    /// The names of the directories in it.
    below: Vec<PathBuf>,
}

impl Walk {
    pub fn of(tree: BorrowedFd<'_>, root: &Path) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let began = now.unwrap_or_default().saturating_sub(TICK);
        let mut dirs = HashMap::new();
        let mut is_listed = true;
        let is_complete = walk(|below| {
            let found = list(&open(tree, below).ok()?);
            is_listed &= found.is_complete;
            // The root of a tree is protected in other ways.
            let is_deeper = found.is_repository && !below.as_os_str().is_empty();
            let before = is_deeper.then(|| Before::of(tree, root, below)).flatten();
            dirs.insert(below.to_owned(), before);
            Some(found.below)
        });
        Self {
            dirs,
            is_complete: is_complete && is_listed,
            began,
        }
    }

    /// The repository that was there before the tool ran.
    pub fn before(&self, below: &Path) -> Option<&Before> {
        self.dirs.get(below).and_then(Option::as_ref)
    }

    /// Whether a repository that the first walk did not come to was made or changed by the tool: git looks into it because an
    /// index lists it. The times of a change are the kernel's.
    pub fn is_touched(&self, tree: BorrowedFd<'_>, below: &Path) -> bool {
        if self.is_made(tree, below) {
            return true;
        }
        let changed = |name: &Path| {
            let found = statat(tree, below.join(name), AtFlags::SYMLINK_NOFOLLOW);
            match found {
                Ok(found) => {
                    let seconds = u64::try_from(found.st_ctime).unwrap_or_default();
                    let nanos = u32::try_from(found.st_ctime_nsec).unwrap_or_default();
                    Duration::new(seconds, nanos) >= self.began
                }
                // What cannot be looked at may have been changed.
                Err(errno) => errno != Errno::NOENT && errno != Errno::NOTDIR,
            }
        };
        let is_pointer = statat(tree, below.join(".git"), AtFlags::SYMLINK_NOFOLLOW);
        let is_pointer = is_pointer
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Directory);
        if is_pointer && changed(Path::new(".git")) {
            return true;
        }
        let hooks = open(tree, &below.join(".git/hooks")).ok();
        let hooks = hooks.map(|hooks| names(&hooks));
        // More than can be looked at.
        if matches!(hooks, Some(None)) {
            return true;
        }
        let hooks = hooks.flatten().into_iter().flatten();
        let mut hooks = hooks.map(|name| Path::new(".git/hooks").join(name));
        CHANGED.iter().any(|name| changed(Path::new(name))) || hooks.any(|hook| changed(&hook))
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
            Some(below) => {
                let left = MOST.saturating_sub(next.len());
                is_complete &= below.len() <= left;
                next.extend(below.into_iter().take(left).map(|name| dir.join(name)));
            }
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
    // Asked for by name: a tool can put any number of entries before it.
    let has_git = !matches!(
        statat(dir, ".git", AtFlags::SYMLINK_NOFOLLOW),
        Err(Errno::NOENT)
    );
    let (mut seen, mut below) = (0, Vec::new());
    for entry in Dir::read_from(dir).into_iter().flatten().flatten() {
        seen += 1;
        if seen > MOST {
            break;
        }
        let name = entry.file_name();
        let kind = match entry.file_type() {
            FileType::Unknown => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| {
                    FileType::from_raw_mode(found.st_mode)
                }),
            kind => kind,
        };
        match name.to_bytes() {
            b"." | b".." | b".git" => {}
            name if kind == FileType::Directory => {
                below.push(PathBuf::from(OsStr::from_bytes(name)));
            }
            _ => {}
        }
    }
    Listed {
        is_repository: has_git || is_bare(dir.as_fd()),
        is_complete: seen <= MOST,
        below,
    }
}

#[cfg(test)]
mod tests {
    use super::super::aside::directory;
    use super::*;
    use rustix::fs::CWD;
    use std::fs;

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
        let walk = Walk::of(tree.as_fd(), &root);
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
        let mut walk = Walk::of(tree.as_fd(), &root);
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
