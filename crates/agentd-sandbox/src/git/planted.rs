//! What a tool planted in a git directory to make the user's git run a program.
//!
//! What exists is read-only in the view; what does not exist cannot be. agentd moves such a name aside: before a sandbox
//! starts, while it runs (which ends the sandbox), and when it has ended. Only *it is not there* means that nothing was
//! planted: a directory that the tool made inaccessible is made accessible first.

use crate::sys;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, chmodat, openat, openat2,
    renameat_with, statat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A git directory that a tool can write to, and the names in it that did not exist when the view was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub dir: PathBuf,
    pub names: Vec<&'static str>,
}

/// What was found in a git directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planted {
    /// It is elsewhere now, where git does not read it.
    Moved(PathBuf),
    /// It is still there.
    Stays(PathBuf),
}

/// How many names are tried for what is moved aside.
const NAMES: u32 = 10_000;

/// The guarded directories, held open: a tool that makes a parent directory inaccessible hides nothing.
#[derive(Debug)]
pub struct Guards(Vec<HeldDir>);

#[derive(Debug)]
struct HeldDir {
    dir: OwnedFd,
    guarded: Guarded,
    /// How deep links are looked for in `logs` and `refs`.
    depth: usize,
    /// The links that were there. Git writes through links: one that a tool made would lead the user's git to other files.
    links: Vec<PathBuf>,
}

impl Guards {
    /// Does not follow a symlink: the paths were resolved when the view was planned. `flags` says how they are held.
    fn open(guarded: &[Guarded], flags: OFlags, depth: usize) -> Result<Self, (PathBuf, Errno)> {
        let open = |guarded: &Guarded| {
            let dir = directory(CWD, &guarded.dir, flags);
            let dir = dir.map_err(|errno| (guarded.dir.clone(), errno))?;
            Ok(HeldDir {
                links: links(dir.as_fd(), depth),
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
            let names = guard.guarded.names.iter().map(PathBuf::from);
            let links = links(dir, guard.depth).into_iter();
            let links = links.filter(|link| !guard.links.contains(link));
            let all = names.chain(links);
            all.filter_map(move |name| clear(dir, path, &name))
                .collect::<Vec<_>>()
        });
        all.collect()
    }
}

/// How deep `logs` and `refs` are looked at, and how many entries.
const DEPTH: usize = 8;
const MOST_ENTRIES: usize = 20_000;

/// The links in a git directory to which git writes: its own entries, and those in `logs` and `refs`.
fn links(git: BorrowedFd<'_>, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = MOST_ENTRIES;
    let mut next = vec![(PathBuf::from("."), depth)];
    while let Some((dir, depth)) = next.pop() {
        let is_top = dir == Path::new(".");
        let Ok(open) = directory(git, &dir, OFlags::RDONLY) else {
            continue;
        };
        for entry in Dir::read_from(&open).into_iter().flatten().flatten() {
            let Some(one_less) = left.checked_sub(1) else {
                return found;
            };
            left = one_less;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = match is_top {
                true => PathBuf::from(name),
                false => dir.join(name),
            };
            let is_written = !is_top || name == "logs" || name == "refs";
            match entry.file_type() {
                // What was moved aside is nothing to git.
                FileType::Symlink if is_refused(name) => {}
                FileType::Symlink => found.push(path),
                FileType::Directory if is_written && depth > 0 && name != "." && name != ".." => {
                    next.push((path, depth - 1));
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether something was moved aside under this name.
fn is_refused(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.windows(b".refused".len())
        .any(|part| part == b".refused")
}

/// A directory that is reached without a link.
pub fn directory(at: BorrowedFd<'_>, dir: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let without_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(at, dir, flags, Mode::empty(), without_links)
}

/// A directory whose entries can be listed. A tool can take that right away, and git needs only the right to enter it.
pub fn listed(at: BorrowedFd<'_>, dir: &Path) -> Result<OwnedFd, Errno> {
    match directory(at, dir, OFlags::RDONLY) {
        Err(Errno::ACCESS | Errno::PERM) => {
            make_accessible(directory(at, dir, OFlags::PATH)?.as_fd());
            directory(at, dir, OFlags::RDONLY)
        }
        opened => opened,
    }
}

/// Moves `name` of this directory aside if there is anything.
pub fn clear(dir: BorrowedFd<'_>, path: &Path, name: &Path) -> Option<Planted> {
    let mut parts = name.components();
    let (first, rest) = (Path::new(parts.next()?.as_os_str()), parts.as_path());
    let mut found = statat(dir, first, AtFlags::SYMLINK_NOFOLLOW);
    if matches!(found, Err(errno) if errno != Errno::NOENT) {
        make_accessible(dir);
        found = statat(dir, first, AtFlags::SYMLINK_NOFOLLOW);
    }
    let kind = match found {
        Err(Errno::NOENT) => return None,
        Err(_) => return Some(Planted::Stays(path.join(first))),
        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
    };
    if rest.as_os_str().is_empty() || kind != FileType::Directory {
        // A link, or anything else in place of a directory on the way, is planted too.
        return Some(move_aside(dir, path, first));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = path.join(first);
    match openat(dir, first, flags, Mode::empty()) {
        Ok(inner) => clear(inner.as_fd(), &path, rest),
        Err(_) => Some(Planted::Stays(path)),
    }
}

pub fn move_aside(dir: BorrowedFd<'_>, path: &Path, name: &Path) -> Planted {
    let refused = |n: u32| match n {
        0 => format!("{}.refused", name.display()),
        n => format!("{}.refused-{n}", name.display()),
    };
    for n in 0..NAMES {
        let aside = refused(n);
        let to = |()| {
            let flags = RenameFlags::NOREPLACE;
            renameat_with(dir, name, dir, Path::new(&aside), flags)
        };
        let mut moved = to(());
        if let Err(Errno::ACCESS | Errno::PERM) = moved {
            make_accessible(dir);
            moved = to(());
        }
        match moved {
            Err(Errno::EXIST) => {}
            // Someone else moved it meanwhile.
            Ok(()) | Err(Errno::NOENT) => return Planted::Moved(path.join(aside)),
            Err(_) => break,
        }
    }
    Planted::Stays(path.join(name))
}

/// Gives the owner all rights to a directory. A tool can take them away, because it has the same user.
fn make_accessible(dir: BorrowedFd<'_>) {
    let Ok(stat) = statat(dir, "", AtFlags::EMPTY_PATH) else {
        return;
    };
    let mode = Mode::from_raw_mode(stat.st_mode) | Mode::RWXU;
    // A directory that is only held by its path cannot be changed through the descriptor itself.
    let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    // If this fails, so does what was to be done.
    let _refused = chmodat(CWD, path, mode, AtFlags::empty());
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
