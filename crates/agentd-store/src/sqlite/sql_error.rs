//! What SQLite reports, as the store's errors.

use crate::error::{Disk, Error};
use std::sync::Arc;

/// Whether SQLite says that the file is damaged, as opposed to the disk failing.
pub(super) fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(Code::DatabaseCorrupt | Code::NotADatabase)
    )
}

impl Disk {
    pub(super) fn from_sqlite(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full,
            Some(Code::ReadOnly) => Self::ReadOnly,
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Locked,
            Some(Code::SystemIoFailure) => Self::Io(Arc::new(error)),
            Some(
                Code::CannotOpen | Code::PermissionDenied | Code::AuthorizationForStatementDenied,
            ) => Self::CannotOpen(Arc::new(error)),
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt(Arc::new(error)),
            _ => Self::Other(Arc::new(error)),
        }
    }
}

/// Errors of reads. A write reports its own outcome.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(Disk::from_sqlite(error))
    }
}
