//! Opening a database file the way each part needs it.

use super::Options;
use super::schema;
use crate::error::{Disk, Error, Result};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Statements kept compiled per connection.
const STATEMENTS: usize = 64;

/// How much a file is worth.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Every commit is on disk when it returns.
    Full,
    /// Can be made again.
    Derived,
}

/// Opens for writing, creating the file and its tables where they are missing.
pub fn writer(options: &Options, path: &Path, durability: Durability) -> Result<Connection> {
    let mut connection = open(
        options,
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )?;
    // Before the first page is written: larger pages hold a typical event whole.
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Derived => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // What is deleted is overwritten: a purge must leave nothing behind.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    let migrations = match durability {
        Durability::Full => schema::JOURNAL,
        Durability::Derived => schema::DERIVED,
    };
    schema::migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Opens for reading what a writer has made.
pub fn reader(options: &Options, path: &Path) -> Result<Connection> {
    let connection = open(options, path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(options: &Options, path: &Path, flags: OpenFlags) -> Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(|error| Error::Unavailable(Disk::from_sqlite(error)))?;
    connection.busy_timeout(options.lock_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}
