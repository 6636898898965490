//! Mounts on a root that is being built. No path is followed through a symlink.

use crate::error::{Failed, Step};
use crate::sys;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// No device node and no setuid bit counts on any mount of a sandbox.
pub const PLAIN: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// The root of the view while it is built: on a tmpfs of its own.
///
/// It holds open the parent directories of the path that was requested last. A view is built in the order of its paths,
/// so that most of a path is open already. No held directory has had a mount put on it since.
pub struct Root {
    top: OwnedFd,
    way: Vec<(PathBuf, OwnedFd)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File,
}

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

pub fn open_at(dir: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), NO_LINKS)
}

pub fn kind(of: BorrowedFd<'_>) -> Result<Kind, Errno> {
    let stat = rustix::fs::fstat(of)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        Ok(Kind::Dir)
    } else {
        Ok(Kind::File)
    }
}

/// A directory or file of the host. A symlink anywhere on the way is an error: since the plan was made, a process of
/// the agent may have put one there.
pub fn source(path: &Path) -> Result<OwnedFd, Failed> {
    open_at(CWD, path).map_err(|errno| Failed::at(Step::Source, path, errno))
}

/// A copy of the mounts from this path downwards, not attached yet.
pub fn copy(from: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Failed> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(from, c"", flags).map_err(|errno| Failed::at(Step::Mount, path, errno))
}

pub fn limit(mount: BorrowedFd<'_>, attributes: u64, path: &Path) -> Result<(), Failed> {
    sys::set_mount_attributes(mount, attributes, true)
        .map_err(|error| Failed::at(Step::Mount, path, error))
}

/// The file system of pseudo-terminals.
pub const DEVPTS: &str = "devpts";

/// A new file system. An option without a value is a flag.
pub fn new(fs: &str, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(context.as_fd(), *key)?;
        } else {
            fsconfig_set_string(context.as_fd(), *key, *value)?;
        }
    }
    fsconfig_create(context.as_fd())?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    // Nothing can create a device there; with `nodev` no program could open a terminal.
    if fs != DEVPTS {
        attributes |= MountAttrFlags::MOUNT_ATTR_NODEV;
    }
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

impl Root {
    pub fn new(top: OwnedFd) -> Self {
        let way = Vec::new();
        Self { top, way }
    }

    pub fn top(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }

    /// What is at this path of the view.
    pub fn find(&mut self, path: &Path) -> Result<OwnedFd, Errno> {
        let (dir, below) = self.nearest(path);
        open_at(dir, below)
    }

    /// The innermost directory on the way that is held, and the rest of the path.
    fn nearest<'a>(&self, path: &'a Path) -> (BorrowedFd<'_>, &'a Path) {
        let mut held = self.way.iter().rev();
        let nearest = held.find_map(|(at, dir)| Some((dir.as_fd(), path.strip_prefix(at).ok()?)));
        let (dir, below) = nearest.unwrap_or((self.top(), path.strip_prefix("/").unwrap_or(path)));
        if below.as_os_str().is_empty() {
            (dir, Path::new("."))
        } else {
            (dir, below)
        }
    }

    /// A directory, made if it is not there: on the tmpfs of the root, or in the agent's own home or `/tmp`.
    pub fn dir(&mut self, path: &Path) -> Result<BorrowedFd<'_>, Failed> {
        while self.way.last().is_some_and(|(at, _)| !path.starts_with(at)) {
            self.way.pop();
        }
        let held = self.way.last().map(|(at, _)| at.as_path());
        if held != Some(path) && path.parent().is_some() {
            let failed = |errno| Failed::at(Step::Target, path, errno);
            let dir = match self.find(path) {
                Err(Errno::NOENT) => {
                    let (parent, name) = self.place(path)?;
                    make_dir(parent, name).map_err(failed)?;
                    open_at(parent, name)
                }
                found => found,
            };
            self.way.push((path.to_owned(), dir.map_err(failed)?));
        }
        Ok(self.way.last().map_or(self.top(), |(_, dir)| dir.as_fd()))
    }

    /// What is at this path, made if it is not there.
    pub fn make(&mut self, path: &Path, wanted: Kind) -> Result<OwnedFd, Failed> {
        let failed = |errno| Failed::at(Step::Target, path, errno);
        let (dir, name) = self.place(path)?;
        match wanted {
            Kind::Dir => make_dir(dir, name),
            Kind::File => make_file(dir, name),
        }
        .map_err(failed)?;
        open_at(dir, name).map_err(failed)
    }

    /// The directory that a path lies in, made if it is not there, and the name.
    pub fn place<'a>(&mut self, path: &'a Path) -> Result<(BorrowedFd<'_>, &'a Path), Failed> {
        let dir = self.dir(path.parent().unwrap_or(Path::new("/")))?;
        Ok((dir, Path::new(path.file_name().unwrap_or_default())))
    }

    /// Creates a symlink, unless the path exists or is inside a tree of the host, which is not changed.
    pub fn link(&mut self, path: &Path, to: &Path) -> Result<(), Failed> {
        const STAYS: &[Errno] = &[
            Errno::EXIST,
            Errno::NOTDIR,
            Errno::LOOP,
            Errno::ROFS,
            Errno::ACCESS,
        ];
        let linked = self.place(path).and_then(|(dir, name)| {
            let linked = rustix::fs::symlinkat(to, dir, name);
            linked.map_err(|errno| Failed::at(Step::Target, path, errno))
        });
        match linked {
            Err(failed) if STAYS.contains(&Errno::from_raw_os_error(failed.errno)) => Ok(()),
            linked => linked,
        }
    }

    /// Puts a mount at a path, which is made if it is not there.
    pub fn put(&mut self, mount: OwnedFd, kind: Kind, path: &Path) -> Result<(), Failed> {
        let (dir, name) = self.place(path)?;
        let made = match kind {
            Kind::Dir => make_dir(dir, name),
            Kind::File => make_file(dir, name),
        };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        match (move_mount(mount.as_fd(), c"", dir, name, flags), made) {
            (Err(Errno::NOENT), Err(errno)) => return Err(Failed::at(Step::Target, path, errno)),
            (put, _) => put.map_err(|errno| Failed::at(Step::Mount, path, errno))?,
        }
        self.hold(path, mount);
        Ok(())
    }

    /// Puts a mount on what was found at this path.
    pub fn cover(&mut self, found: OwnedFd, mount: OwnedFd, path: &Path) -> Result<(), Failed> {
        attach(mount.as_fd(), found.as_fd())
            .map_err(|errno| Failed::at(Step::Mount, path, errno))?;
        self.hold(path, mount);
        Ok(())
    }

    /// From now on, paths below this one lead into the mount.
    fn hold(&mut self, path: &Path, mount: OwnedFd) {
        self.way.retain(|(at, _)| !at.starts_with(path));
        self.way.push((path.to_owned(), mount));
    }

    /// Makes a part of the view read-only where it is.
    pub fn freeze(&mut self, path: &Path) -> Result<(), Failed> {
        let Ok(here) = self.find(path) else {
            return Ok(());
        };
        let mount = copy(here.as_fd(), path)?;
        limit(mount.as_fd(), READ_ONLY, path)?;
        self.cover(here, mount, path)
    }
}

pub fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

fn make_dir(dir: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

fn make_file(dir: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}
