//! Files that other processes can write: regular files only, without waiting, and never more than a limit.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Which symbolic links a path may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Any: for a path that the user wrote.
    Follow,
    /// Any but the last component: for a directory that was resolved, with a name in it.
    NotLast,
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
            Error::NotFound => io::ErrorKind::NotFound,
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
        Links::Refuse => ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        Links::Follow | Links::NotLast => ResolveFlags::empty(),
    };
    open_regular(CWD, path, links, within)
}

/// Opens a regular file for reading, by its path relative to an open directory.
pub fn open_at(dir: impl AsFd, below: &Path, links: Links) -> Result<File, Error> {
    let within = match links {
        Links::Refuse => {
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
        }
        Links::Follow | Links::NotLast => ResolveFlags::empty(),
    };
    open_regular(dir.as_fd(), below, links, within)
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
        Links::Follow => OFlags::empty(),
        Links::NotLast | Links::Refuse => OFlags::NOFOLLOW,
    };
    let flags = how | last | OFlags::CLOEXEC;
    if within.is_empty() {
        // A process under the filter of a sandbox has no `openat2`.
        return rustix::fs::openat(dir, path, flags, Mode::empty());
    }
    rustix::fs::openat2(dir, path, flags, Mode::empty(), within)
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
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    const LIMIT: u64 = 1000;

    fn dir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(dir.path()).unwrap();
        (dir, at)
    }

    fn fifo(path: &Path) {
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
    }

    /// Without a writer, a plain open of a pipe would wait for ever; and a device never ends.
    #[test]
    fn only_a_regular_file_is_read() {
        let (_dir, at) = dir();
        fifo(&at.join("pipe"));
        symlink("/dev/zero", at.join("zero")).unwrap();
        symlink("pipe", at.join("to-pipe")).unwrap();
        for name in ["pipe", "zero", "to-pipe", "."] {
            let read = read(&at.join(name), Links::Follow, LIMIT);
            assert!(matches!(read, Err(Error::NotRegular)), "{name} {read:?}");
        }
        let read = read(&at.join("none"), Links::Follow, LIMIT);
        assert!(matches!(read, Err(Error::NotFound)), "{read:?}");
    }

    #[test]
    fn a_link_is_followed_only_where_it_may_be() {
        let (_dir, at) = dir();
        fs::create_dir(at.join("real")).unwrap();
        fs::write(at.join("real/file"), "a").unwrap();
        symlink("file", at.join("real/link")).unwrap();
        symlink("real", at.join("dir")).unwrap();
        let is_read = |path: &str, links| match read(&at.join(path), links, LIMIT) {
            Ok(bytes) => bytes == b"a",
            Err(Error::Link) => false,
            Err(error) => panic!("{path} {error}"),
        };
        for (path, followed, not_last, refused) in [
            ("real/file", true, true, true),
            ("real/link", true, false, false),
            ("dir/file", true, true, false),
            ("dir/link", true, false, false),
        ] {
            assert_eq!(is_read(path, Links::Follow), followed, "{path}");
            assert_eq!(is_read(path, Links::NotLast), not_last, "{path}");
            assert_eq!(is_read(path, Links::Refuse), refused, "{path}");
            let below = read_below(&at, Path::new(path), LIMIT);
            assert_eq!(below.is_ok(), refused, "{path}");
        }
        assert!(read_below(&at.join("dir"), Path::new("file"), LIMIT).is_ok());
        assert!(read_below(&at.join("dir"), Path::new("../real/file"), LIMIT).is_err());
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let (_dir, at) = dir();
        let path = at.join("file");
        fs::write(&path, "ä".repeat(500)).unwrap();
        assert_eq!(read(&path, Links::Refuse, LIMIT).unwrap().len(), 1000);
        assert!(read_text(&path, Links::Refuse, LIMIT).is_ok());
        fs::write(&path, [255]).unwrap();
        let text = read_text(&path, Links::Refuse, LIMIT);
        assert!(matches!(text, Err(Error::NotText)), "{text:?}");
        // Sparse: a reader without a limit would need as much memory.
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let read = read(&path, Links::Refuse, LIMIT);
        assert!(matches!(read, Err(Error::TooLarge { limit: LIMIT })));
        let error = io::Error::from(read.unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
