//! Git directories without a `.git` around them.

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Whether git can take a directory itself for a git directory: it has a `HEAD`, and a `commondir` or both `objects` and `refs`. Git
/// does so if there is no `.git`, and if what is there is damaged.
pub fn is_bare(dir: BorrowedFd<'_>) -> bool {
    // What cannot be looked at may be there.
    let has = |name: &str| {
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        !matches!(found, Err(Errno::NOENT))
    };
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
