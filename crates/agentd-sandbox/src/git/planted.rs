//! What a tool planted in a git directory to make the user's git run a program.
//!
//! What exists is read-only in the view; what does not exist cannot be. agentd moves such a name aside: before a sandbox
//! starts, while it runs (which ends the sandbox), and when it has ended. Only *it is not there* means that nothing was
//! planted: a directory that the tool made inaccessible is made accessible first.

use super::aside::{Planted, clear, directory};
use super::links::{DEPTH, Links};
use crate::sys;
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A git directory that a tool can write to, and the names in it that did not exist when the view was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub dir: PathBuf,
    pub names: Vec<&'static str>,
}

/// The guarded directories, held open: a tool that makes a parent directory inaccessible hides nothing.
#[derive(Debug)]
pub struct Guards(Vec<HeldDir>);

#[derive(Debug)]
struct HeldDir {
    dir: OwnedFd,
    guarded: Guarded,
    /// How deep links are looked for in `logs` and `refs`.
    depth: usize,
    links: Links,
}

impl Guards {
    /// Does not follow a symlink: the paths were resolved when the view was planned. `flags` says how they are held.
    fn open(guarded: &[Guarded], flags: OFlags, depth: usize) -> Result<Self, (PathBuf, Errno)> {
        let open = |guarded: &Guarded| {
            let dir = directory(CWD, &guarded.dir, flags);
            let dir = dir.map_err(|errno| (guarded.dir.clone(), errno))?;
            let links = Links::of(dir.as_fd(), depth);
            Ok(HeldDir {
                links: links.map_err(|errno| (guarded.dir.clone(), errno))?,
                dir,
                guarded: guarded.clone(),
                depth,
            })
        };
        guarded.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// For the process outside.
    pub fn new(guarded: &[Guarded]) -> Result<Self, (PathBuf, Errno)> {
        Self::open(guarded, OFlags::PATH, DEPTH)
    }

    /// The guarded directories, with their paths.
    pub fn dirs(&self) -> impl Iterator<Item = (BorrowedFd<'_>, &Path)> {
        let all = self.0.iter();
        all.map(|guard| (guard.dir.as_fd(), guard.guarded.dir.as_path()))
    }

    /// Moves aside what was planted.
    pub fn clear(&self) -> Vec<Planted> {
        let all = self.0.iter().flat_map(|guard| {
            let (dir, path) = (guard.dir.as_fd(), &guard.guarded.dir);
            let names = guard.guarded.names.iter().map(Path::new);
            let planted = names.filter_map(|name| clear(dir, path, name));
            let mut planted: Vec<Planted> = planted.collect();
            guard.links.clear(dir, path, guard.depth, &mut planted);
            planted
        });
        all.collect()
    }
}

/// Tells PID 1 by a signal when something is made in a guarded directory, or in one of its directories that has guarded
/// names.
pub struct Watch {
    guards: Guards,
    /// Those below the guarded directories that are watched.
    inner: Vec<(PathBuf, OwnedFd)>,
}

impl Watch {
    /// A directory that cannot be watched is an error.
    pub fn new(guarded: &[Guarded]) -> Result<Self, (PathBuf, Errno)> {
        let guards = Guards::open(guarded, OFlags::RDONLY, 0)?;
        for guard in &guards.0 {
            signal(&guard.dir, &guard.guarded.dir)?;
        }
        let mut watch = Self {
            guards,
            inner: Vec::new(),
        };
        watch.follow()?;
        Ok(watch)
    }

    /// Watches the directories on the way to guarded names. They may have been made, or made anew, since.
    fn follow(&mut self) -> Result<(), (PathBuf, Errno)> {
        for HeldDir { dir, guarded, .. } in &self.guards.0 {
            let names = guarded.names.iter().map(Path::new);
            let ways = names.flat_map(|name| name.ancestors().skip(1));
            for way in ways.filter(|way| !way.as_os_str().is_empty()) {
                let path = guarded.dir.join(way);
                let inner = match directory(dir.as_fd(), way, OFlags::RDONLY) {
                    Err(Errno::NOENT) => continue,
                    inner => inner.map_err(|errno| (path.clone(), errno))?,
                };
                let known = self.inner.iter().find(|(known, _)| *known == path);
                if known.is_some_and(|(_, known)| is_same(known, &inner)) {
                    continue;
                }
                signal(&inner, &path)?;
                self.inner.retain(|(known, _)| *known != path);
                self.inner.push((path, inner));
            }
        }
        Ok(())
    }

    /// Whether anything was planted. If so, it has been moved aside where that is possible. A directory that can no
    /// longer be watched counts as planted.
    pub fn is_planted(&mut self) -> bool {
        let is_hidden = self.follow().is_err();
        !self.guards.clear().is_empty() || is_hidden
    }
}

fn signal(dir: &OwnedFd, path: &Path) -> Result<(), (PathBuf, Errno)> {
    sys::signal_new_entries(dir.as_fd()).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        (path.to_owned(), errno)
    })
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let id = |dir: &OwnedFd| {
        let stat = rustix::fs::fstat(dir);
        stat.map(|stat| (stat.st_dev, stat.st_ino))
    };
    match (id(one), id(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
