//! The repositories into which git looks when it looks at a work tree: those that the index of the work tree lists.

use super::aside::{directory, listed};
use super::index;
use super::outside::{OutsideGitDir, plain};
use agentd_files::foreign::{self, Error, Links};
use rustix::fs::{AtFlags, CWD, Dir, FileType, OFlags, statat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const POINTER_BYTES: u64 = 4200;

/// A directory in a tree that a tool can write to.
#[derive(Clone, Copy)]
pub struct WorkTree<'a> {
    pub tree: BorrowedFd<'a>,
    /// The path of the tree, without links.
    pub root: &'a Path,
    /// Relative to the tree; empty for the tree itself.
    pub below: &'a Path,
}

/// Git directories outside the tree, held open, by their paths.
pub type Outside<'a> = &'a dyn Fn(&Path) -> Option<OwnedFd>;

/// What an index lists.
pub enum Listed {
    /// Directories that are there, relative to the tree.
    Links(BTreeSet<PathBuf>),
    /// More than may be read. The git directory has the index.
    TooLarge(OwnedFd),
}

impl<'a> WorkTree<'a> {
    pub fn path(&self) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => self.root.to_owned(),
            false => self.root.join(self.below),
        }
    }

    pub fn dir(&self) -> Option<OwnedFd> {
        match self.below.as_os_str().is_empty() {
            true => self.tree.try_clone_to_owned().ok(),
            false => directory(self.tree, self.below, OFlags::PATH).ok(),
        }
    }

    /// The git directory of the work tree that begins here.
    pub fn git_dir(&self, outside: Outside<'_>) -> Option<OwnedFd> {
        let dir = self.dir()?;
        let found = statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let named = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                return directory(dir.as_fd(), Path::new(".git"), OFlags::PATH).ok();
            }
            FileType::RegularFile => pointer(dir.as_fd(), &self.path())?,
            // Only the user makes one that stays, at the root.
            _ => fs::canonicalize(self.path().join(".git")).ok()?,
        };
        outside(&named).or_else(|| {
            let inside = named.strip_prefix(self.root).ok()?;
            directory(self.tree, inside, OFlags::PATH).ok()
        })
    }

    /// What the index of the work tree lists; `limit` is the number of bytes that may be read, and gets smaller.
    pub fn listed(&self, outside: Outside<'_>, limit: &mut u64) -> Listed {
        let Some(git) = self.git_dir(outside) else {
            return Listed::Links(BTreeSet::new());
        };
        let most = (*limit).min(index::MOST_BYTES);
        match foreign::read_at(git.as_fd(), Path::new("index"), Links::Refuse, most) {
            Ok(index) => {
                *limit = limit.saturating_sub(index.len() as u64);
                let mut links = self.links(&index);
                match self.shared(&git, limit) {
                    Some(shared) => links.extend(shared),
                    None => return Listed::TooLarge(git),
                }
                Listed::Links(links)
            }
            Err(Error::TooLarge { .. }) => Listed::TooLarge(git),
            Err(_) => Listed::Links(BTreeSet::new()),
        }
    }

    /// What the shared indexes list, of which an index may be a part. `None` if they are too large.
    fn shared(&self, git: &OwnedFd, limit: &mut u64) -> Option<BTreeSet<PathBuf>> {
        let mut links = BTreeSet::new();
        let entries = listed(git.as_fd(), Path::new(".")).ok();
        let entries = entries.and_then(|dir| Dir::read_from(&dir).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().to_bytes();
            if !name.starts_with(b"sharedindex.") {
                continue;
            }
            let most = (*limit).min(index::MOST_BYTES);
            let name = Path::new(OsStr::from_bytes(name));
            match foreign::read_at(git.as_fd(), name, Links::Refuse, most) {
                Ok(index) => {
                    *limit = limit.saturating_sub(index.len() as u64);
                    links.extend(self.links(&index));
                }
                Err(Error::TooLarge { .. }) => return None,
                Err(_) => {}
            }
        }
        Some(links)
    }

    fn links(&self, index: &[u8]) -> BTreeSet<PathBuf> {
        let Some(dir) = self.dir() else {
            return BTreeSet::new();
        };
        let is_there = |link: &Path| directory(dir.as_fd(), link, OFlags::PATH).is_ok();
        let links = index::submodules(index, is_there).into_iter();
        links.map(|link| self.below.join(link)).collect()
    }
}

/// What the index of a repository around a tree lists in the tree: the user's git looks into them from there. Relative to
/// the tree.
pub fn listed_around(tree: &Path) -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    for around in tree.ancestors().skip(1) {
        let Ok(found) = fs::symlink_metadata(around.join(".git")) else {
            continue;
        };
        let git = match found.is_dir() {
            true => Some(around.join(".git")),
            false => OutsideGitDir::of(around).map(|dir| dir.linked.unwrap_or(dir.common)),
        };
        let git = git.and_then(|git| directory(CWD, &git, OFlags::PATH).ok());
        let (Some(git), Ok(way)) = (git, tree.strip_prefix(around)) else {
            continue;
        };
        let index = Path::new("index");
        let index = foreign::read_at(git.as_fd(), index, Links::Refuse, index::MOST_BYTES);
        let is_there = |link: &Path| {
            let is_below = link
                .strip_prefix(way)
                .is_ok_and(|it| !it.as_os_str().is_empty());
            is_below && around.join(link).is_dir()
        };
        let listed = index.map(|index| index::submodules(&index, is_there));
        let listed = listed.unwrap_or_default().into_iter();
        links.extend(listed.filter_map(|link| Some(link.strip_prefix(way).ok()?.to_owned())));
    }
    links
}

/// What the `.git` file of a directory names.
pub fn pointer(dir: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let text = foreign::read_text_at(dir, Path::new(".git"), Links::Refuse, POINTER_BYTES).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    plain(path, named)
}
