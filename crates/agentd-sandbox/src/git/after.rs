//! What agentd does to the repositories in a tool's trees when the tool has ended.

use super::aside::{Planted, clear, directory};
use super::bare::is_bare;
use super::config_copy::ConfigCopies;
use super::deeper::Walk;
use super::index;
use super::made::Changes;
use super::planted::{Guarded, Guards};
use agentd_files::foreign::{self, Links};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The repositories of a view, held open from before the tool ran.
#[derive(Debug)]
pub struct Repositories {
    guards: Guards,
    trees: Vec<Tree>,
    /// Git directories, and files that name one, that were there before the tool ran: they are read-only where it counts.
    /// `None` if the tool can make none: what appears is the user's own.
    known: Option<Vec<PathBuf>>,
    copies: ConfigCopies,
}

/// A tree that the tool can write to.
#[derive(Debug)]
struct Tree {
    dir: OwnedFd,
    path: PathBuf,
    /// What was in it before the tool ran; `None` if the tool can make no repository.
    walk: Option<Walk>,
}

/// What a tool may not do to a repository, and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// What was moved away from where git reads it.
    pub moved: Vec<PathBuf>,
    /// What could not be moved away: the user's git would run what it names.
    pub stays: Vec<PathBuf>,
    /// Settings that did not become settings of the repository, by their names.
    pub settings: Vec<String>,
}

const POINTER_BYTES: u64 = 4200;
const DEPTH: usize = 6;
const MOST_DIRS: usize = 4096;

impl Refused {
    pub fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.stays.is_empty() && self.settings.is_empty()
    }
}

impl Repositories {
    /// `known` are the git directories, and files that name one, that are there now; `None` if the tool can make none.
    pub fn hold(
        guarded: &[Guarded],
        trees: &[PathBuf],
        known: Option<Vec<PathBuf>>,
        copies: ConfigCopies,
    ) -> Result<Self, (PathBuf, Errno)> {
        let guards = Guards::new(guarded)?;
        let hold = |tree: &PathBuf| {
            let held = directory(CWD, tree, OFlags::PATH);
            held.ok().map(|dir| Tree {
                walk: known.is_some().then(|| Walk::of(dir.as_fd())),
                path: tree.clone(),
                dir,
            })
        };
        Ok(Self {
            guards,
            // A tree may be a single file.
            trees: trees.iter().filter_map(hold).collect(),
            known,
            copies,
        })
    }

    /// Moves away what is planted already. What stays keeps the tool from starting.
    pub fn clear(&self) -> Option<PathBuf> {
        let found = self.guards.clear().into_iter();
        let mut stays = found.filter_map(|found| match found {
            Planted::Stays(path) => Some(path),
            Planted::Moved(_) => None,
        });
        stays.next()
    }

    /// A configuration that has a second name. A tool could write it by that name, which is no mount.
    pub fn with_second_name(&self) -> Option<PathBuf> {
        let mut dirs = self.guards.dirs();
        dirs.find_map(|(dir, path)| {
            let found = statat(dir, "config", AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            (is_file && found.st_nlink > 1).then(|| path.join("config"))
        })
    }

    /// To be called when no process of the tool is left.
    pub fn clean_up(&self) -> Refused {
        let mut changes = Changes {
            planted: self.guards.clear(),
            removed: Vec::new(),
        };
        if self.known.is_some() {
            self.check_made(&mut changes);
        }
        changes.removed.extend(self.copies.merge());
        let mut refused = Refused {
            settings: changes.removed,
            ..Refused::default()
        };
        for planted in changes.planted {
            match planted {
                Planted::Moved(path) => refused.moved.push(path),
                Planted::Stays(path) => refused.stays.push(path),
            }
        }
        refused
    }

    /// The repositories that the tool made.
    fn check_made(&self, changes: &mut Changes) {
        for (dir, path) in self.guards.dirs() {
            let is_known = |path: &Path| self.is_known(path);
            let mut left = MOST_DIRS;
            let bounds = &mut (DEPTH, &mut left);
            changes.modules(dir, path, Path::new("modules"), &is_known, bounds);
            changes.worktrees(dir, path, &is_known);
        }
        for Tree { dir, path, walk } in &self.trees {
            self.check(dir.as_fd(), path, Path::new(""), changes);
            for submodule in submodules(dir.as_fd()) {
                self.check(dir.as_fd(), path, &submodule, changes);
            }
            // What was cleaned above is harmless; it is looked at once more.
            for (below, before) in walk.iter().flat_map(|walk| walk.found(dir.as_fd())) {
                let is_guarded = self.is_known(&path.join(&below).join(".git"));
                if is_guarded
                    || before.is_some_and(|it| it.restore(dir.as_fd(), path, &below, changes))
                {
                    continue;
                }
                self.check(dir.as_fd(), path, &below, changes);
            }
        }
    }

    fn is_known(&self, path: &Path) -> bool {
        let mut known = self.known.iter().flatten();
        known.any(|known| known == path)
    }

    /// The `.git` of a directory in a tree, if the tool made it.
    fn check(&self, tree: BorrowedFd<'_>, root: &Path, below: &Path, changes: &mut Changes) {
        let inner = match below.as_os_str().is_empty() {
            true => tree.try_clone_to_owned().map_err(|_| Errno::MFILE),
            false => directory(tree, below, OFlags::PATH),
        };
        let (Ok(dir), path) = (inner, root.join(below)) else {
            return;
        };
        let git = path.join(".git");
        if !self.is_known(&path) && is_bare(dir.as_fd()) {
            changes.make_harmless(dir.as_fd(), &path);
        }
        let Ok(found) = statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        if self.is_known(&git) {
            return;
        }
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => match directory(dir.as_fd(), Path::new(".git"), OFlags::PATH) {
                Ok(made) => changes.make_harmless(made.as_fd(), &git),
                Err(_) => changes.planted.push(Planted::Stays(git)),
            },
            FileType::RegularFile
                if pointer(&dir, &path).is_some_and(|named| {
                    self.is_guarded(&named) || changes.follow(tree, root, &named)
                }) => {}
            _ => changes
                .planted
                .extend(clear(dir.as_fd(), &path, Path::new(".git"))),
        }
    }

    /// Whether a directory is in one of the guarded ones, whose contents are looked at anyway.
    fn is_guarded(&self, named: &Path) -> bool {
        let mut dirs = self.guards.dirs().map(|(_, dir)| dir);
        dirs.any(|dir| {
            let inside = ["modules", "worktrees"].map(|name| dir.join(name));
            inside.iter().any(|inside| named.starts_with(inside))
        })
    }
}

/// What the `.git` file of a directory names.
fn pointer(dir: &OwnedFd, path: &Path) -> Option<PathBuf> {
    let text = foreign::read_text_at(dir, Path::new(".git"), Links::Refuse, POINTER_BYTES).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    super::outside::plain(path, named)
}

/// The submodules that the index of a tree lists and that are there.
pub fn submodules(tree: BorrowedFd<'_>) -> BTreeSet<PathBuf> {
    let path = Path::new(".git/index");
    let index = foreign::read_at(tree, path, Links::Refuse, index::MOST_BYTES);
    let is_there = |below: &Path| directory(tree, below, OFlags::PATH).is_ok();
    let index = index.ok();
    index.map_or_else(BTreeSet::new, |index| index::submodules(&index, is_there))
}
