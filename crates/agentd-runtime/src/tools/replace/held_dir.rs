//! The parent directory of a file that is replaced, held open, so that a directory that is swapped meanwhile cannot
//! redirect the write.
//!
//! The path was resolved and checked before. Since then, a command of the same agent could have replaced one of its
//! directories by a link, to a directory that only the check protects from file tools, such as git's configuration.
//! So the directory is opened without following links, and all operations are relative to it.

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

pub(super) struct HeldDir(OwnedFd);

impl HeldDir {
    /// The parent directory of a file whose path contains no link.
    pub fn of(file: &Path) -> io::Result<Self> {
        let path = file.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // A kernel before 5.6, on which there is no sandbox either.
            Err(Errno::NOSYS) => Ok(Self(openat(CWD, path, flags, Mode::empty())?)),
            held_dir => Ok(Self(held_dir?)),
        }
    }

    /// `None` if the file does not exist.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A rename needs no write permission on the file that it replaces, but a write-protected file must not be replaced.
    pub fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.0, name, flags, Mode::empty()) {
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => Err(errno.into()),
            _ => Ok(()),
        }
    }

    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(mode))?;
        Ok(File::from(file))
    }

    /// Removes a file; it need not exist.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
