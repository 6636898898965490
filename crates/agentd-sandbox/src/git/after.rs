//! What agentd does to the repositories in a tool's trees when the tool has ended.

use super::addresses::Places;
use super::aside::{Planted, clear, directory};
use super::bare::is_bare;
use super::config_copy::ConfigCopies;
use super::deeper::Walk;
use super::gitlinks::{Listed, WorkTree, listed_around, pointer};
use super::made::Changes;
use super::planted::{Guarded, Guards};
use super::record::Record;
use super::refused::Refused;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, statat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// The repositories of a view, held open from before the tool ran.
#[derive(Debug)]
pub struct Repositories {
    guards: Guards,
    trees: Vec<Tree>,
    /// Git directories, and files that name one, that were there before the tool ran: they are read-only where it counts.
    /// `None` if the tool can make none: what appears is the user's own.
    known: Option<HashSet<PathBuf>>,
    copies: ConfigCopies,
    record: Record,
    places: Places,
}

/// A tree that the tool can write to.
#[derive(Debug)]
struct Tree {
    dir: OwnedFd,
    path: PathBuf,
    /// What was in it before the tool ran; `None` if the tool can make no repository.
    walk: Option<Walk>,
    /// What the index of a repository around it lists in it.
    listed_around: BTreeSet<PathBuf>,
}

const DEPTH: usize = 6;
const MOST_DIRS: usize = 4096;
const INDEX_BYTES: u64 = 256 * 1024 * 1024;

impl Repositories {
    /// `known` are the git directories, and files that name one, that are there now; `None` if the tool can make none.
    pub fn hold(
        guarded: &[Guarded],
        trees: &[PathBuf],
        known: Option<Vec<PathBuf>>,
        copies: ConfigCopies,
        record: Record,
        mut places: Places,
    ) -> Result<Self, (PathBuf, Errno)> {
        let guards = Guards::new(guarded)?;
        places.trees.extend_from_slice(trees);
        places
            .guarded
            .extend(guarded.iter().map(|it| it.dir.clone()));
        let hold = |tree: &PathBuf| {
            let held = directory(CWD, tree, OFlags::PATH);
            held.ok().map(|dir| Tree {
                walk: known.is_some().then(|| Walk::of(dir.as_fd(), tree)),
                listed_around: known
                    .as_ref()
                    .map(|_| listed_around(tree))
                    .unwrap_or_default(),
                path: tree.clone(),
                dir,
            })
        };
        Ok(Self {
            guards,
            // A tree may be a single file.
            trees: trees.iter().filter_map(hold).collect(),
            known: known.map(HashSet::from_iter),
            copies,
            record,
            places,
        })
    }

    /// Moves away what is planted already. What stays keeps the tool from starting.
    pub fn clear(&self) -> Option<PathBuf> {
        let found = self.guards.clear();
        self.record.add(staying(&found));
        staying(&found).next().map(Path::to_owned)
    }

    /// To be called when no process of the tool is left.
    pub fn clean_up(&self) -> Refused {
        let mut changes = Changes::new(self.places.clone());
        self.guards
            .clear()
            .into_iter()
            .for_each(|it| changes.plant(it));
        if self.known.is_some() {
            self.check_made(&mut changes);
        }
        changes.removed.extend(self.copies.merge(&self.places));
        self.record.add(staying(&changes.planted));
        Refused::of(&changes.planted, changes.removed)
    }

    /// The repositories that the tool made.
    fn check_made(&self, changes: &mut Changes) {
        for (_, path) in self.guards.dirs() {
            changes.accept(path);
        }
        for (dir, path) in self.guards.dirs() {
            let is_known = |path: &Path| self.is_known(path);
            let mut left = MOST_DIRS;
            let bounds = &mut (DEPTH, &mut left);
            changes.modules(dir, path, Path::new("modules"), &is_known, bounds);
            changes.worktrees(dir, path, &is_known);
        }
        for tree in &self.trees {
            let mut look = Look::default();
            self.check(tree, Path::new(""), changes, &mut look, 0);
            for link in &tree.listed_around {
                self.check(tree, link, changes, &mut look, 0);
            }
            // What was cleaned above is harmless; it is looked at once more.
            let walk = tree.walk.iter();
            for (below, _) in walk.flat_map(|walk| walk.found(tree.dir.as_fd())) {
                self.check(tree, &below, changes, &mut look, 0);
            }
        }
    }

    fn is_known(&self, path: &Path) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.contains(path))
    }

    /// The repository of a directory, and those into which git looks from there.
    fn check(
        &self,
        tree: &Tree,
        below: &Path,
        changes: &mut Changes,
        look: &mut Look,
        depth: usize,
    ) {
        if !look.seen.insert(below.to_owned()) {
            return;
        }
        self.check_one(tree, below, changes);
        let is_root = below.as_os_str().is_empty();
        let outside = |named: &Path| self.guarded(named);
        let mut of_root = u64::MAX;
        let limit = match is_root {
            true => &mut of_root,
            false => &mut look.left,
        };
        match tree.work_tree(below).listed(&outside, limit) {
            Listed::Links(links) if links.is_empty() => {}
            Listed::Links(links) if depth < DEPTH => {
                for link in links {
                    self.check(tree, &link, changes, look, depth + 1);
                }
            }
            // The user's own index is as large as it is.
            _ if is_root => {}
            Listed::TooLarge(git) => changes.drop_index(git.as_fd(), &tree.path.join(below)),
            Listed::Links(_) => {
                if let Some(git) = tree.work_tree(below).git_dir(&outside) {
                    changes.drop_index(git.as_fd(), &tree.path.join(below));
                }
            }
        }
    }

    /// A guarded git directory.
    fn guarded(&self, named: &Path) -> Option<OwnedFd> {
        let mut dirs = self.guards.dirs();
        let (dir, _) = dirs.find(|(_, path)| *path == named)?;
        dir.try_clone_to_owned().ok()
    }

    fn check_one(&self, tree: &Tree, below: &Path, changes: &mut Changes) {
        let (fd, path) = (tree.dir.as_fd(), tree.path.join(below));
        let is_root = below.as_os_str().is_empty();
        let path = if is_root { tree.path.clone() } else { path };
        let git = path.join(".git");
        if let Some(walk) = tree
            .walk
            .as_ref()
            .filter(|_| !is_root && !self.is_known(&git))
        {
            let before = walk.before(below);
            if before.is_some_and(|it| it.restore(fd, &tree.path, below, changes)) {
                return;
            }
            if before.is_none() && !walk.is_touched(fd, below) {
                return;
            }
        }
        let Some(dir) = tree.work_tree(below).dir() else {
            return;
        };
        if !self.is_known(&path) && is_bare(dir.as_fd()) {
            changes.make_harmless(dir.as_fd(), &path);
        }
        let Ok(found) = statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        if self.is_known(&git) {
            return;
        }
        changes.separate(dir.as_fd(), &path, ".git");
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => match directory(dir.as_fd(), Path::new(".git"), OFlags::PATH) {
                Ok(made) => changes.make_harmless(made.as_fd(), &git),
                Err(_) => changes.plant(Planted::Stays(git)),
            },
            FileType::RegularFile
                if pointer(dir.as_fd(), &path)
                    .is_some_and(|named| changes.follow(fd, &tree.path, &named)) => {}
            _ => {
                if let Some(planted) = clear(dir.as_fd(), &path, Path::new(".git")) {
                    changes.plant(planted);
                }
            }
        }
    }
}

impl Tree {
    fn work_tree<'a>(&'a self, below: &'a Path) -> WorkTree<'a> {
        WorkTree {
            tree: self.dir.as_fd(),
            root: &self.path,
            below,
        }
    }
}

/// What was looked at in one tree.
struct Look {
    seen: HashSet<PathBuf>,
    /// How many bytes of indexes may still be read: a tool can make many by links to one file.
    left: u64,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            seen: HashSet::new(),
            left: INDEX_BYTES,
        }
    }
}

fn staying(planted: &[Planted]) -> impl Iterator<Item = &Path> {
    planted.iter().filter_map(|planted| match planted {
        Planted::Stays(path) => Some(path.as_path()),
        Planted::Moved(_) => None,
    })
}
