//! Opening a file whose content is to be read.

use super::lines::SNIFFED;
use agentd_files::foreign::{self, Links};
use std::fs::{self, File, Metadata};
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
        check(&fs::metadata(path)?)?;
        // Another file may be there by now.
        let mut file = match foreign::open(path, Links::Follow) {
            Err(foreign::Error::NotRegular) => return Err(Unreadable::NotRegular),
            opened => opened.map_err(io::Error::from)?,
        };
        let metadata = file.metadata()?;
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
