//! Copies a database with its write-ahead log while its program may be writing.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How often a copy is repeated if the files changed meanwhile.
const ATTEMPTS: usize = 5;
const COPY: &str = "copy.db";

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The path of the copy. A checkpoint between the two files would make the copies not fit together, so both must be
/// unchanged after the copy. The last attempt counts in any case: the import saves what it can read.
pub(super) fn copy(path: &Path, scratch: &Path) -> io::Result<PathBuf> {
    let copied = scratch.join(COPY);
    for _ in 0..ATTEMPTS {
        let before = marks(path)?;
        fs::copy(path, &copied)?;
        match fs::copy(log_of(path), log_of(&copied)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(&log_of(&copied))?;
            }
            Err(error) => return Err(error),
        }
        if marks(path)? == before {
            break;
        }
    }
    Ok(copied)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

type Mark = Option<(u64, Option<SystemTime>)>;

/// What changes when one of the files is written.
fn marks(path: &Path) -> io::Result<(Mark, Mark)> {
    let mark = |of: &Metadata| (of.len(), of.modified().ok());
    let log = fs::metadata(log_of(path)).ok();
    Ok((Some(mark(&fs::metadata(path)?)), log.as_ref().map(mark)))
}
