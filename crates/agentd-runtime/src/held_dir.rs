//! The parent directory of a file that is replaced, held open, so that a directory that is swapped meanwhile cannot
//! redirect the write.
//!
//! The path was resolved and checked before. Since then, a command of the same agent could have replaced one of its
//! directories by a link, to a directory that only the check protects from file tools, such as git's configuration.
//! So the directory is opened without following links, and all operations are relative to it.

use agentd_files::foreign;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, renameat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

pub struct HeldDir(OwnedFd);

impl HeldDir {
    /// The parent directory of a file whose path contains no link.
    pub fn of(file: &Path) -> io::Result<Self> {
        let path = file.parent().unwrap_or(Path::new("/"));
        Ok(Self(foreign::open_dir(path)?))
    }

    /// The same. Directories on the way that do not exist are created.
    pub fn make(file: &Path) -> io::Result<Self> {
        let path = file.parent().unwrap_or(Path::new("/"));
        match Self::of(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            held_dir => return held_dir,
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(CWD, "/", flags, Mode::empty())?;
        for part in path.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            at = match openat(&at, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    // If this fails, the directory is on disk with the file that is created in it.
                    let _unsupported = rustix::fs::fsync(&at);
                    openat(&at, name, flags, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(Self(at))
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

    /// Opens a file for reading. Neither a symlink is followed nor a pipe waited for.
    pub fn open(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens an existing file to write it from its beginning.
    pub fn truncate(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(File::from(openat(&self.0, name, flags, mode)?))
    }

    /// The target of a symlink.
    pub fn link_target(&self, name: &OsStr) -> io::Result<OsString> {
        let target = readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    pub fn link(&self, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.0, name)?)
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

    /// What identifies the directory.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.0)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
