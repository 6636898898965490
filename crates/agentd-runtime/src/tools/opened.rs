//! Opening a file whose content is to be read.

use super::lines::SNIFFED;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
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
        // Checked before it is opened: opening a pipe blocks until another process opens the other end.
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(Unreadable::Directory);
        }
        if !metadata.is_file() {
            return Err(Unreadable::NotRegular);
        }
        let mut file = File::open(path)?;
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
