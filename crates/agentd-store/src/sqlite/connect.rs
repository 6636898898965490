//! Opening a database file the way each part needs it.

use super::follower::index;
use super::template::{self, Durable};
use super::{Options, schema};
use crate::error::{Disk, Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Statements kept compiled per connection.
const STATEMENTS: usize = 64;
/// Between two tries at a lock that SQLite does not wait for.
const POLL: Duration = Duration::from_millis(5);

/// Starts one of the store's threads, with a name that tools show.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let named = std::thread::Builder::new().name(format!("store-{name}"));
    named.spawn(work).map_err(Error::NoThread)
}

/// Opens the journal for writing, creating the file and its tables where they are missing. Every
/// commit is on disk when it returns.
pub fn journal(options: &Options) -> Result<Connection> {
    let synchronous = match options.is_injected_bug("not_synced") {
        true => "OFF",
        false => "FULL",
    };
    let path = options.journal();
    template::make(options, &path, schema::JOURNAL, Durable::Yes)?;
    writer(options, &path, synchronous, schema::JOURNAL)
}

/// The same for what is derived. That is a cache: one that cannot be read, or that a newer agentd
/// made, is emptied and made again.
pub fn derived(options: &Options) -> Result<Connection> {
    let open = || {
        template::make(options, &options.derived(), schema::DERIVED, Durable::No)?;
        let connection = writer(options, &options.derived(), "NORMAL", schema::DERIVED)?;
        index::make_shard(&connection, 0)?;
        Ok(connection)
    };
    match open() {
        Err(error) if is_useless(&error) => {
            tracing::warn!(%error, "search and snapshots are made again");
            let connection = connect(options, &options.derived(), WRITE)?;
            empty(&connection)?;
            drop(connection);
            open()
        }
        opened => opened,
    }
}

/// Whether a derived file that says this is better made again.
pub const fn is_useless(error: &Error) -> bool {
    matches!(
        error,
        Error::NewerSchema { .. } | Error::Unavailable(Disk::Corrupt(_))
    )
}

/// Whether SQLite finds nothing wrong with a file. Looks at all of it.
pub fn is_sound(connection: &Connection) -> bool {
    let found: rusqlite::Result<String> =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    found.is_ok_and(|found| found == "ok")
}

/// Makes the derived file new, under the eyes of those who have it open.
pub fn renew(connection: &mut Connection) -> Result<()> {
    empty(connection)?;
    schema::migrate(connection, schema::DERIVED)?;
    index::make_shard(connection, 0)
}

/// Takes everything out of a file, however damaged it is.
fn empty(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = connection.execute_batch("VACUUM");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied?;
    Ok(())
}

const WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE);

/// A connection to a file that is yet to be filled.
pub fn create(options: &Options, path: &Path) -> Result<Connection> {
    connect(options, path, WRITE)
}

fn writer(
    options: &Options,
    path: &Path,
    synchronous: &str,
    migrations: &[schema::Migration],
) -> Result<Connection> {
    let mut connection = connect(options, path, WRITE)?;
    // Before anything is touched: what a newer agentd wrote is left as it is.
    schema::check(&connection, migrations)?;
    // Before the first page is written: larger pages hold a typical event whole.
    connection.pragma_update(None, "page_size", 8192)?;
    use_log(options, &connection)?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    // What is deleted is overwritten: a purge must leave nothing behind.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    schema::migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Switches to a write-ahead log. SQLite waits for nobody here, and others may be making the same file
/// just now: so we do.
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

/// The write-ahead log stays as it is when this connection is closed: it may hold what SQLite does not
/// see any more.
pub fn leave_log(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}

/// Takes [`leave_log`] back.
pub fn clear_log(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Opens for reading what a writer has made.
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
