//! Builds a journal from the parts of a chain of backups. The last backup is read first, and the rows of an earlier one only
//! where no later one has them: text that was purged in between is never written.

use super::codec::{Rows as PartRows, bad};
use super::{Mark, Rows, TABLES, add_to_spine, has_table};
use crate::backup::{BackupMark, Link};
use crate::chain;
use crate::error::{Disk, Error, Result};
use crate::sqlite::template::{self, Durable};
use crate::sqlite::{Options, connect, schema};
use rusqlite::{Connection, params_from_iter};
use sha2::{Digest as _, Sha256};

/// A journal that is being restored. It is complete after [`JournalRestore::finish`].
pub struct JournalRestore {
    journal: Connection,
    /// What must be there at the end.
    mark: Mark,
}

impl JournalRestore {
    /// Creates an empty journal with the tables that the last backup of the chain had. No journal may be there.
    pub fn begin(options: &Options, last: &BackupMark) -> Result<Self> {
        let mark = Mark::read(last)?;
        let known = schema::JOURNAL.len() as u32;
        let newer = Error::NewerSchema {
            found: mark.schema,
            known,
        };
        let tables = schema::JOURNAL.get(..mark.schema as usize).ok_or(newer)?;
        if options.has_traces() {
            return Err(bad("the directory already has a journal"));
        }
        std::fs::create_dir_all(&options.dir)
            .map_err(|error| Error::Unavailable(template::of_io(error)))?;
        let path = options.journal();
        template::make(options, &path, tables, Durable::Yes)?;
        let journal = connect::writer(options, &path, "FULL", tables)?;
        journal.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { journal, mark })
    }

    /// Adds a part of one of the backups. The parts of the last backup come first, then those of the one before it.
    pub fn part(&mut self, link: Link, part: &[u8]) -> Result<()> {
        let mut rows = PartRows::of(part)?;
        let table = TABLES.get(usize::from(rows.table));
        let table = table.ok_or_else(|| bad("rows of an unknown table"))?;
        if !has_table(&self.journal, table.name)? {
            return Err(bad("rows of a table that did not exist yet"));
        }
        let verb = match (table.rows, link) {
            (_, Link::Last) => "INSERT",
            (Rows::Grow { .. }, Link::Earlier) => "INSERT OR IGNORE",
            // The last backup has all rows.
            (Rows::Whole, Link::Earlier) => return Ok(()),
        };
        let columns: i64 = self.journal.query_row(
            "SELECT count(*) FROM pragma_table_info(?1)",
            [table.name],
            |row| row.get(0),
        )?;
        let columns = columns.unsigned_abs() as usize;
        let places = vec!["?"; columns].join(", ");
        let sql = format!("{verb} INTO {} VALUES ({places})", table.name);
        let mut statement = self.journal.prepare_cached(&sql)?;
        while let Some(row) = rows.next(columns)? {
            statement.execute(params_from_iter(row)).map_err(refused)?;
        }
        Ok(())
    }

    /// Makes the journal durable, if it has all events of the last backup. The content of the events is not checked; see
    /// `SqliteStore::inspect`.
    pub fn finish(self) -> Result<()> {
        let mut spine = Sha256::new();
        add_to_spine(&self.journal, i64::MAX, &mut spine)?;
        if chain::hex(&spine.finalize()) != self.mark.spine {
            return Err(bad(
                "events are missing, or are not those that the backup was made of",
            ));
        }
        let committed = self.journal.execute_batch("COMMIT");
        committed.map_err(|error| Error::NotCommitted(Disk::from_sqlite(error)))?;
        connect::empty_log(&self.journal)?;
        self.journal
            .close()
            .map_err(|(_, error)| Error::Unavailable(Disk::from_sqlite(error)))
    }
}

/// A row that the tables do not accept is a fault of the backup; a full disk is not.
fn refused(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::ConstraintViolation | Code::TypeMismatch) => {
            bad("a row that does not fit into its table")
        }
        _ => Error::NotCommitted(Disk::from_sqlite(error)),
    }
}
