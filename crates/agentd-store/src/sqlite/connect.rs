//! Opening a database file the way each part needs it.

use super::{Options, schema};
use crate::error::{Disk, Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Statements kept compiled per connection.
const STATEMENTS: usize = 64;
/// The pause between two attempts to get a lock that SQLite does not wait for.
const POLL: Duration = Duration::from_millis(5);

/// Starts one of the store's threads, with a name that tools show.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let named = std::thread::Builder::new().name(format!("store-{name}"));
    named.spawn(work).map_err(Error::NoThread)
}

/// Whether SQLite finds the file intact. Checks all of it.
pub fn is_sound(connection: &Connection) -> bool {
    let found: rusqlite::Result<String> =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    found.is_ok_and(|found| found == "ok")
}

/// Deletes the contents of a file, however damaged it is.
pub fn empty(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = connection.execute_batch("VACUUM");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied?;
    Ok(())
}

const WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE);

/// A connection to a new file.
pub fn create(options: &Options, path: &Path) -> Result<Connection> {
    connect(options, path, WRITE)
}

/// Opens a file for writing, and migrates its tables.
pub fn writer(
    options: &Options,
    path: &Path,
    synchronous: &str,
    migrations: &[schema::Migration],
) -> Result<Connection> {
    let mut connection = connect(options, path, WRITE)?;
    // Before any change: a file that a newer agentd wrote is left as it is.
    schema::check(&connection, migrations)?;
    // Before the first page is written: larger pages hold a typical event whole.
    connection.pragma_update(None, "page_size", 8192)?;
    use_log(options, &connection)?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    // Deleted data is overwritten: a purge must leave nothing behind.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    schema::migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Switches to a write-ahead log. Another process may be creating the same file, and SQLite does not wait for its lock
/// here, so this function does.
fn use_log(options: &Options, connection: &Connection) -> Result<()> {
    let begin = Instant::now();
    loop {
        let switched = connection.pragma_update(None, "journal_mode", "WAL");
        let Err(error) = switched else { return Ok(()) };
        let disk = Disk::from_sqlite(error);
        if !matches!(disk, Disk::Locked) || begin.elapsed() >= options.lock_timeout {
            return Err(Error::Unavailable(disk));
        }
        // tidy: polls for the lock
        std::thread::sleep(POLL);
    }
}

/// From now on, closing this connection leaves the write-ahead log unchanged: the log may contain frames that SQLite
/// no longer sees, but that a repair can read.
pub fn leave_log(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}

/// Reverts [`leave_log`].
pub fn clear_log(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Moves the log into the file and truncates it. False if a reader prevents it.
pub fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}

/// Opens an existing file for reading.
pub fn reader(options: &Options, path: &Path) -> Result<Connection> {
    let connection = connect(options, path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(options: &Options, path: &Path, flags: OpenFlags) -> Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(|error| Error::Unavailable(Disk::from_sqlite(error)))?;
    connection.busy_timeout(options.lock_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    #[cfg(test)]
    let connection = super::explain::overheard(connection, path);
    Ok(connection)
}
