//! Why a command of the writer failed.

use crate::error::{Disk, Error};

/// Why a command failed.
pub(super) enum Failure {
    /// The command itself is refused; the others continue.
    Refused(Error),
    /// The disk failed: no command of this group is committed.
    Disk(Disk),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Disk(Disk::from_sqlite(error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(disk) | Error::NotCommitted(disk) => Self::Disk(disk),
            refused => Self::Refused(refused),
        }
    }
}

/// An unreadable page fails the commands that need it, not the rest of the group.
pub(super) fn contained(error: Error) -> Failure {
    match error {
        Error::Unavailable(Disk::Corrupt(_)) => Failure::Refused(error),
        error => error.into(),
    }
}
