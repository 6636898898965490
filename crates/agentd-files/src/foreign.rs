//! Files that other processes can write: regular files only, without waiting, and never more than a limit.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Which symbolic links a path may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Any: for a path that the user wrote.
    Follow,
    /// Any but the last component: for a directory that was resolved, with a name in it.
    NotLast,
    /// Those that stay below the directory ([`open_at`]). None in a path without one, and none in the sandbox of an agent's
    /// tools, where the kernel cannot be asked.
    Inside,
    /// None. Below a directory ([`open_at`]) the path must also stay there.
    Refuse,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it does not exist")]
    NotFound,
    #[error("it is a symbolic link, or its path contains one")]
    Link,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is too large: the limit is {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not valid UTF-8")]
    NotText,
    #[error(transparent)]
    Io(io::Error),
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::LOOP => Self::Link,
            error => Self::Io(error.into()),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            // As the kernel says it.
            Error::NotFound => return Errno::NOENT.into(),
            Error::Link | Error::NotRegular => io::ErrorKind::InvalidInput,
            Error::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Error::NotText => io::ErrorKind::InvalidData,
            Error::Io(_) => io::ErrorKind::Other,
        };
        match error {
            Error::Io(error) => error,
            error => Self::new(kind, error),
        }
    }
}

/// Opens a regular file for reading.
pub fn open(path: &Path, links: Links) -> Result<File, Error> {
    let within = match links {
        Links::Inside | Links::Refuse => ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        Links::Follow | Links::NotLast => ResolveFlags::empty(),
    };
    open_regular(CWD, path, links, within)
}

/// Opens a regular file for reading, by its path relative to an open directory.
pub fn open_at(dir: impl AsFd, below: &Path, links: Links) -> Result<File, Error> {
    let within = match links {
        Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        Links::Refuse => {
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
        }
        Links::Follow | Links::NotLast => ResolveFlags::empty(),
    };
    open_regular(dir.as_fd(), below, links, within)
}

/// Opens a directory that is reached without a link, to work in it whatever happens to its path.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(open_within(CWD, path, flags, within)?)
}

/// The content of a regular file. A file with more than `limit` bytes is an error.
pub fn read(path: &Path, links: Links, limit: u64) -> Result<Vec<u8>, Error> {
    bounded(open(path, links)?, limit)
}

/// The content of a regular file, as text.
pub fn read_text(path: &Path, links: Links, limit: u64) -> Result<String, Error> {
    text(read(path, links, limit)?)
}

/// The content of a regular file, by its path relative to an open directory.
pub fn read_at(dir: impl AsFd, below: &Path, links: Links, limit: u64) -> Result<Vec<u8>, Error> {
    bounded(open_at(dir, below, links)?, limit)
}

/// The content of a regular file, as text, by its path relative to an open directory.
pub fn read_text_at(
    dir: impl AsFd,
    below: &Path,
    links: Links,
    limit: u64,
) -> Result<String, Error> {
    text(read_at(dir, below, links, limit)?)
}

/// The content of a regular file below a directory, reached from there without a link. The path of the directory itself
/// may contain links.
pub fn read_below(root: &Path, below: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    read_at(root, below, Links::Refuse, limit)
}

/// The rest of an open file, if it is a regular one and has at most `limit` bytes.
pub fn bounded(file: File, limit: u64) -> Result<Vec<u8>, Error> {
    if !file.metadata()?.is_file() {
        return Err(Error::NotRegular);
    }
    let mut bytes = Vec::new();
    // The limit applies to the bytes that are read, because the file may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { limit });
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|_| Error::NotText)
}

fn open_regular(
    dir: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    within: ResolveFlags,
) -> Result<File, Error> {
    // Before it is opened: opening a device or a pipe can have effects.
    let looked_at = open_with(dir, path, OFlags::PATH, links, within)?;
    check(&looked_at)?;
    // Another file may be there by now. Non-blocking: otherwise opening a pipe waits until a process opens its other end.
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_with(dir, path, how, links, within)?;
    check(&file)?;
    Ok(file.into())
}

fn open_with(
    dir: BorrowedFd<'_>,
    path: &Path,
    how: OFlags,
    links: Links,
    within: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let last = match links {
        Links::Follow | Links::Inside => OFlags::empty(),
        Links::NotLast | Links::Refuse => OFlags::NOFOLLOW,
    };
    let flags = how | last | OFlags::CLOEXEC;
    if within.is_empty() {
        return rustix::fs::openat(dir, path, flags, Mode::empty());
    }
    open_within(dir, path, flags, within)
}

fn open_within(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    within: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(dir, path, flags, Mode::empty(), within) {
        // In the sandbox of an agent's tools there is no such call.
        Err(Errno::NOSYS) => open_by_parts(dir, path, flags, within),
        opened => opened,
    }
}

/// The same, one part of the path after the other.
fn open_by_parts(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    within: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let step = |at: BorrowedFd<'_>, name: &Path| {
        let opened = rustix::fs::openat(at, name, on_the_way, Mode::empty());
        // Without following it, a link is no directory.
        opened.map_err(|error| match rustix::fs::readlinkat(at, name, Vec::new()) {
            Ok(_) if error == Errno::NOTDIR => Errno::LOOP,
            _ => error,
        })
    };
    let is_inside = within.contains(ResolveFlags::BENEATH);
    let (above, last) = match path.components().next_back() {
        Some(Component::Normal(last)) => (path.parent().unwrap_or(Path::new("")), last.as_ref()),
        _ => (path, Path::new(".")),
    };
    let mut at = step(dir, Path::new("."))?;
    for part in above.components() {
        at = match part {
            Component::Normal(name) => step(at.as_fd(), name.as_ref())?,
            Component::CurDir => continue,
            Component::RootDir | Component::ParentDir | Component::Prefix(_) if is_inside => {
                return Err(Errno::XDEV);
            }
            Component::RootDir | Component::Prefix(_) => step(CWD, Path::new("/"))?,
            Component::ParentDir => step(at.as_fd(), Path::new(".."))?,
        };
    }
    let opened = rustix::fs::openat(&at, last, flags | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(
        |error| match rustix::fs::readlinkat(&at, last, Vec::new()) {
            Ok(_) if error == Errno::NOTDIR => Errno::LOOP,
            _ => error,
        },
    )
}

fn check(file: &OwnedFd) -> Result<(), Error> {
    let stat = rustix::fs::statat(file, "", AtFlags::EMPTY_PATH)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        // With `O_PATH` and `O_NOFOLLOW`, the link itself is opened.
        FileType::Symlink => Err(Error::Link),
        _ => Err(Error::NotRegular),
    }
}

#[cfg(test)]
mod tests;
