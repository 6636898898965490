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
use std::path::Path;

pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// No device node and no setuid bit counts on any mount of a sandbox.
pub const PLAIN: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// The root of the view while it is built: on a tmpfs of its own.
pub struct Root(pub OwnedFd);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File,
}

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

fn open_at(dir: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
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

/// A copy of the mounts from here on down, not yet anywhere.
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
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

impl Root {
    /// What is at this path of the view.
    pub fn find(&self, path: &Path) -> Result<OwnedFd, Errno> {
        open_at(self.0.as_fd(), relative(path))
    }

    /// The same, made if it is not there: on the tmpfs of the root, or in the agent's own home or `/tmp`.
    pub fn make(&self, path: &Path, wanted: Kind) -> Result<OwnedFd, Failed> {
        let failed = |errno| Failed::at(Step::Target, path, errno);
        match self.find(path) {
            Err(Errno::NOENT) => {}
            found => return found.map_err(failed),
        }
        let parent = self.parent_of(path)?;
        let name = path.file_name().unwrap_or_default();
        match wanted {
            Kind::Dir => make_dir(parent.as_fd(), Path::new(name)),
            Kind::File => make_file(parent.as_fd(), Path::new(name)),
        }
        .map_err(failed)?;
        open_at(parent.as_fd(), Path::new(name)).map_err(failed)
    }

    fn parent_of(&self, path: &Path) -> Result<OwnedFd, Failed> {
        self.make(path.parent().unwrap_or(Path::new("/")), Kind::Dir)
    }

    /// A symlink, unless something is there.
    pub fn link(&self, path: &Path, to: &Path) -> Result<(), Failed> {
        if !matches!(self.find(path), Err(Errno::NOENT)) {
            return Ok(());
        }
        let parent = self.parent_of(path)?;
        let name = path.file_name().unwrap_or_default();
        match rustix::fs::symlinkat(to, parent, name) {
            // In a tree of the host, which is as it is.
            Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => Ok(()),
            Err(errno) => Err(Failed::at(Step::Target, path, errno)),
        }
    }

    /// Puts a mount at a path, which is made if it is not there.
    pub fn put(&self, mount: BorrowedFd<'_>, path: &Path) -> Result<(), Failed> {
        let kind = kind(mount).map_err(|errno| Failed::at(Step::Mount, path, errno))?;
        let target = self.make(path, kind)?;
        attach(mount, target.as_fd()).map_err(|errno| Failed::at(Step::Mount, path, errno))
    }

    /// Makes a part of the view read-only where it is.
    pub fn freeze(&self, path: &Path) -> Result<(), Failed> {
        let Ok(here) = self.find(path) else {
            return Ok(());
        };
        let mount = copy(here.as_fd(), path)?;
        limit(mount.as_fd(), READ_ONLY, path)?;
        attach(mount.as_fd(), here.as_fd()).map_err(|errno| Failed::at(Step::Mount, path, errno))
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

/// Views have absolute paths; below a descriptor they are relative.
fn relative(path: &Path) -> &Path {
    let relative = path.strip_prefix("/").unwrap_or(path);
    if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    }
}
