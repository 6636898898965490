//! The directory of a file that is replaced, held open: what is put in its place meanwhile does not lead elsewhere.
//!
//! The path was resolved and checked before. A command of the same agent could exchange one of its directories for a link since then, to where
//! only the check keeps file tools out, such as git's configuration. So it is opened without following any link, and
//! everything else is done in there by name.

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
    /// Of a file whose path has no link in it.
    pub fn of(file: &Path) -> io::Result<Self> {
        let path = file.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // A kernel before 5.6, which has no sandbox either.
            Err(Errno::NOSYS) => Ok(Self(openat(CWD, path, flags, Mode::empty())?)),
            held_dir => Ok(Self(held_dir?)),
        }
    }

    /// None where there is no such file.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Replacing a file needs no write permission on it. A write-protected file must not be replaced all the same.
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

    /// That there is no such file.
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
