//! Git directories without a `.git` around them.

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// The names by which git takes a directory itself for a git directory.
#[derive(Default)]
pub struct Bare {
    head: bool,
    common: bool,
    objects: bool,
    refs: bool,
}

impl Bare {
    pub fn see(&mut self, name: &[u8]) {
        match name {
            b"HEAD" => self.head = true,
            b"commondir" => self.common = true,
            b"objects" => self.objects = true,
            b"refs" => self.refs = true,
            _ => {}
        }
    }

    pub const fn is_git_dir(&self) -> bool {
        self.head && (self.common || (self.objects && self.refs))
    }
}

/// Whether git can take a directory itself for a git directory. It does so if there is no `.git`, and if what is there is damaged.
pub fn is_bare(dir: BorrowedFd<'_>) -> bool {
    let mut bare = Bare::default();
    for name in ["HEAD", "commondir", "objects", "refs"] {
        // What cannot be looked at may be there.
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(found, Err(Errno::NOENT)) {
            bare.see(name.as_bytes());
        }
    }
    bare.is_git_dir()
}
