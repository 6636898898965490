//! Moving aside what a tool made where git reads it, whatever the modes of the directories are.

use agentd_files::foreign::{self, Links};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, chmodat, openat, openat2,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What was found in a git directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planted {
    /// It is elsewhere now, where git does not read it.
    Moved(PathBuf),
    /// It is still there.
    Stays(PathBuf),
}

/// How many names with a number are tried for what is moved aside, and how many that no tool can know.
const NUMBERED: u32 = 16;
const UNKNOWN: u32 = 16;

/// The length of the longest name to which an ending can be added.
const LONGEST: usize = 255 - ".refused~-0123456789abcdef".len();

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
    move_to(dir, path, name, ".refused")
}

/// The ending of links that were moved aside. No name of a reference has the character `~`, so git writes through none of them.
pub const LINK_ASIDE: &str = ".refused~";

pub fn move_link_aside(dir: BorrowedFd<'_>, path: &Path, name: &Path) -> Planted {
    move_to(dir, path, name, LINK_ASIDE)
}

fn move_to(dir: BorrowedFd<'_>, path: &Path, name: &Path, ending: &str) -> Planted {
    let shown = name.display().to_string();
    let stem = match shown.len() > LONGEST {
        true => "too-long",
        false => &shown,
    };
    let refused = |n: u32| match n {
        0 => format!("{stem}{ending}"),
        n if n < NUMBERED => format!("{stem}{ending}-{n}"),
        // A tool may have taken all the others.
        _ => {
            let random = RandomState::new().build_hasher().finish();
            format!("{stem}{ending}-{random:016x}")
        }
    };
    for n in 0..NUMBERED + UNKNOWN {
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

/// Whether it is a regular file with another name (a hard link), by which a tool could change it although its own name is a
/// mount.
pub fn has_second_name(dir: BorrowedFd<'_>, name: &Path) -> bool {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink > 1
    })
}

/// Replaces a file that has a second name by a copy that has none. What cannot be copied is moved aside.
pub fn separate(dir: BorrowedFd<'_>, path: &Path, name: &Path) -> Option<Planted> {
    if !has_second_name(dir, name) {
        return None;
    }
    match copy_over(dir, name) {
        Some(()) => None,
        None => Some(move_aside(dir, path, name)),
    }
}

fn copy_over(dir: BorrowedFd<'_>, name: &Path) -> Option<()> {
    const BYTES: u64 = 1024 * 1024;
    let content = foreign::read_at(dir, name, Links::Refuse, BYTES).ok()?;
    let random = RandomState::new().build_hasher().finish();
    let new = format!("{random:016x}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, &new, flags, Mode::from_raw_mode(0o644)).ok()?;
    let written = File::from(file).write_all(&content).is_ok();
    let done = written && renameat(dir, &new, dir, name).is_ok();
    if !done {
        let _gone = unlinkat(dir, &new, AtFlags::empty());
    }
    done.then_some(())
}

/// Gives the owner all rights to a directory. A tool can take them away, because it has the same user.
pub fn make_accessible(dir: BorrowedFd<'_>) {
    let Ok(stat) = statat(dir, "", AtFlags::EMPTY_PATH) else {
        return;
    };
    let mode = Mode::from_raw_mode(stat.st_mode) | Mode::RWXU;
    // A directory that is only held by its path cannot be changed through the descriptor itself.
    let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    // If this fails, so does what was to be done.
    let _refused = chmodat(CWD, path, mode, AtFlags::empty());
}
