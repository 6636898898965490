//! Opening a file whose content is to be read.

use super::lines::SNIFFED;
use rustix::fs::OFlags;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A regular file, at its beginning.
pub(super) struct Opened {
    pub file: File,
    /// Enough to detect its type.
    pub beginning: Vec<u8>,
    pub size: u64,
}

pub(super) enum Unreadable {
    Io(io::Error),
    Directory,
    NotRegular,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Opened {
    pub fn at(path: &Path) -> Result<Self, Unreadable> {
        // Before it is opened: opening a device may have effects.
        check(&fs::metadata(path)?)?;
        // Another file may be there by now. Without the flag, opening a pipe blocks until another process opens the other
        // end.
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = File::options()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)?;
        let metadata = file.metadata()?;
        check(&metadata)?;
        let mut beginning = Vec::new();
        (&mut file)
            .take(SNIFFED as u64)
            .read_to_end(&mut beginning)?;
        file.rewind()?;
        Ok(Self {
            file,
            beginning,
            size: metadata.len(),
        })
    }
}

fn check(found: &Metadata) -> Result<(), Unreadable> {
    if found.is_dir() {
        return Err(Unreadable::Directory);
    }
    match found.is_file() {
        true => Ok(()),
        false => Err(Unreadable::NotRegular),
    }
}
