//! After a failure nothing that was remembered counts: open again, read again.

use super::group::{Written, is_there};
use super::{Thread, open};
use crate::error::{Disk, Error, Result};
use crate::sqlite::readers::Databases;
use rusqlite::Connection;

impl Thread {
    /// The open databases; opens them again where a failure closed them.
    pub(super) fn take_databases(&mut self) -> Result<Databases, Disk> {
        if let Some(databases) = self.databases.take() {
            return Ok(databases);
        }
        self.entries.clear();
        self.data_version = 0;
        match open(&self.options) {
            // What a failed sync left behind may look written and not be. Moving everything from the
            // log into the file writes it anew, and syncs it.
            Ok((databases, head)) => match empty_log(&databases.journal) {
                Ok(true) => {
                    self.head = head;
                    // What nobody could be sure of may be there: those who follow should look.
                    self.notify.everyone();
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
        // SQLite has rolled back by itself after the graver errors.
        let rolled_back = databases.journal.is_autocommit()
            || databases.journal.execute_batch("ROLLBACK").is_ok();
        if rolled_back {
            self.databases = Some(databases);
        }
    }

    /// Opens the journal again after a commit that failed, and looks whether it is there after all.
    /// None where the journal could not even be read again.
    pub(super) fn find_after_failure(&mut self, written: Written) -> Option<bool> {
        self.databases = None;
        let databases = self.take_databases().ok()?;
        let there = is_there(&databases.journal, written).ok();
        self.databases = Some(databases);
        there
    }

    /// Another process may have written in between.
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

/// Moves the log into the file and cuts it to nothing. False where a reader is in the way.
pub fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}
