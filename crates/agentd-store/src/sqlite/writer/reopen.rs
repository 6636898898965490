//! Reopens the files after a failure: the cached state is not valid then, and is read again.

use super::Thread;
use crate::error::{Disk, Error, Result};
use crate::sqlite::connect::empty_log;
use crate::sqlite::open;
use crate::sqlite::readers::Databases;
use crate::sqlite::written::{Written, is_there};

impl Thread {
    /// The open databases; reopens them if a failure closed them.
    pub(super) fn take_databases(&mut self) -> Result<Databases, Disk> {
        if let Some(databases) = self.databases.take() {
            return Ok(databases);
        }
        self.entries.clear();
        self.data_version = 0;
        match open::open(&self.options) {
            // After a failed sync, data can be read although it is not on disk. Moving the log into the database file
            // writes the data again and syncs it.
            Ok((databases, head)) => match empty_log(&databases.journal) {
                Ok(true) => {
                    self.head = head;
                    // Appends with an unknown outcome may be on disk, so all subscribers look again.
                    self.notify.wake_all();
                    Ok(databases)
                }
                Ok(false) => Err(Disk::Locked),
                Err(error) => Err(Disk::from_sqlite(error)),
            },
            Err(Error::Unavailable(disk) | Error::NotCommitted(disk)) => Err(disk),
            Err(error) => Err(Disk::Reopen(error.to_string())),
        }
    }

    pub(super) fn roll_back(&mut self, databases: Databases) {
        self.entries.clear();
        self.tips.clear();
        // SQLite has already rolled back after severe errors.
        let rolled_back = databases.journal.is_autocommit()
            || databases.journal.execute_batch("ROLLBACK").is_ok();
        if rolled_back {
            self.databases = Some(databases);
        }
    }

    /// Reopens the journal after a failed commit, and checks whether the commit is on disk. None if the
    /// journal cannot be read.
    pub(super) fn find_after_failure(&mut self, written: Written) -> Option<bool> {
        self.databases = None;
        let databases = self.take_databases().ok()?;
        let there = is_there(&databases.journal, written).ok();
        self.databases = Some(databases);
        there
    }

    /// Drops the cached state if another process has written in between.
    pub(super) fn notice_others(&mut self, databases: &Databases) -> Result<(), Disk> {
        let version = databases
            .journal
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(Disk::from_sqlite)?;
        if version != self.data_version {
            self.data_version = version;
            self.entries.clear();
            self.head.reload();
        }
        Ok(())
    }
}
