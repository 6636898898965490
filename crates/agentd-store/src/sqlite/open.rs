//! Opens the files of a store for writing, and creates them if they are missing.

use super::derived::Derived;
use super::head::{self, Head};
use super::readers::Databases;
use super::shard::make_shard;
use super::template::{self, Durable};
use super::{Options, connect, schema};
use crate::error::{Disk, Error, Result};
use rusqlite::Connection;

/// Opens the journal for writing and creates missing files. A journal that has lost events is refused and
/// left unchanged.
pub fn open(options: &Options) -> Result<(Databases, Head)> {
    std::fs::create_dir_all(&options.dir)
        .map_err(|error| Error::Unavailable(template::of_io(error)))?;
    if options.is_replacing() {
        return Err(Error::RepairUnfinished);
    }
    // Read before the journal: another process may commit in between.
    let known = head::read(&options.head());
    let last = head::check(options, &known)?;
    let journal = journal(options)?;
    let head = Head::open(options.head(), last);
    if options.derived().exists() {
        // An unusable derived file is rebuilt here, before it is read.
        drop(derived(options)?);
    }
    let derived = Derived::reader(options);
    Ok((Databases { journal, derived }, head))
}

/// Opens the journal for writing, and creates the file and its tables if they are missing. A commit
/// returns only after it is on disk.
fn journal(options: &Options) -> Result<Connection> {
    let synchronous = match options.is_injected_bug("not_synced") {
        true => "OFF",
        false => "FULL",
    };
    let path = options.journal();
    template::make(options, &path, schema::JOURNAL, Durable::Yes)?;
    connect::writer(options, &path, synchronous, schema::JOURNAL)
}

/// The same for `derived.db`. That is a cache: if it cannot be read, or a newer agentd wrote it, it is
/// emptied and rebuilt.
pub fn derived(options: &Options) -> Result<Connection> {
    let open = || {
        template::make(options, &options.derived(), schema::DERIVED, Durable::No)?;
        let connection = connect::writer(options, &options.derived(), "NORMAL", schema::DERIVED)?;
        make_shard(&connection, 0)?;
        Ok(connection)
    };
    match open() {
        Err(error) if is_useless(&error) => {
            tracing::warn!(%error, "derived.db is unusable: rebuilding search and snapshots");
            let connection = connect::create(options, &options.derived())?;
            connect::empty(&connection)?;
            drop(connection);
            open()
        }
        opened => opened,
    }
}

/// Whether this error means that the derived file must be rebuilt.
pub const fn is_useless(error: &Error) -> bool {
    matches!(
        error,
        Error::NewerSchema { .. } | Error::Unavailable(Disk::Corrupt(_))
    )
}

/// Rebuilds the derived file while other connections have it open.
pub fn renew(connection: &mut Connection) -> Result<()> {
    connect::empty(connection)?;
    schema::migrate(connection, schema::DERIVED)?;
    make_shard(connection, 0)
}
