//! The one file that defeats the protection of a git directory: `commondir`.
//!
//! A main git directory has no such file, so it cannot be made read-only without creating it. A tool that creates it
//! makes git read its configuration from a directory of the tool's choice, and the configuration names programs. agentd
//! moves the file aside: before a sandbox starts, while it runs (which ends the sandbox), and when it has ended.

use crate::sys;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const NAME: &str = "commondir";
const ASIDE: &str = "commondir.refused";

/// Moves aside what was planted in these git directories, and says where.
pub fn remove(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let planted = |dir: &Path| {
        let dir = open(dir, OFlags::PATH)?;
        move_aside(dir.as_fd()).then_some(())
    };
    let found = dirs.iter().filter(|dir| planted(dir).is_some());
    found.map(|dir| dir.join(NAME)).collect()
}

/// Does not follow a symlink: the path was resolved when the view was planned.
fn open(dir: &Path, how: OFlags) -> Option<OwnedFd> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    let flags = how | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

fn move_aside(dir: BorrowedFd<'_>) -> bool {
    match rustix::fs::renameat(dir, NAME, dir, ASIDE) {
        Ok(()) => true,
        Err(Errno::NOENT) => false,
        // Something is in the way.
        Err(_) => rustix::fs::unlinkat(dir, NAME, AtFlags::empty()).is_ok(),
    }
}

/// Tells PID 1 by a signal when something is made in a git directory.
pub struct Watch(Vec<OwnedFd>);

impl Watch {
    /// A directory that cannot be watched is left out: the check at the end remains.
    pub fn new(dirs: &[PathBuf]) -> Self {
        let dirs = dirs.iter().filter_map(|dir| open(dir, OFlags::RDONLY));
        Self(
            dirs.filter(|dir| sys::signal_new_entries(dir.as_fd()).is_ok())
                .collect(),
        )
    }

    /// Whether the file was created. If so, it has been moved aside.
    pub fn is_planted(&self) -> bool {
        self.0.iter().any(|dir| move_aside(dir.as_fd()))
    }
}
