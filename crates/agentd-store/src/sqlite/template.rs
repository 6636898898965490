//! A new database file, whole from the moment it has its name.
//!
//! It is made beside its place without a single sync, synced once, and then linked to its name. SQLite
//! would sync several times on the way to an empty database in WAL mode.

use super::{Options, connect, schema};
use crate::error::{Disk, Error, Result};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the file must survive a power cut from the moment it is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    Yes,
    /// A cache.
    No,
}

/// Makes the file if there is none. Another process may do the same: one of the two files stays.
pub fn make(
    options: &Options,
    path: &Path,
    migrations: &[schema::Migration],
    durable: Durable,
) -> Result<()> {
    if path.exists() {
        return keep_private(path).map_err(|error| Error::Unavailable(of_io(error)));
    }
    let new = unused(path);
    let made = fill(options, &new, migrations).and_then(|()| {
        let placed = place(&new, path, durable);
        placed.map_err(|error| Error::Unavailable(of_io(error)))
    });
    // It has its name by now, or is of no use.
    let _gone = fs::remove_file(&new);
    if options.is_injected_bug("state_open") {
        drop(fs::set_permissions(path, fs::Permissions::from_mode(0o666)));
    }
    made
}

/// A name that nobody else uses.
fn unused(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("new-{}-{n}", std::process::id()))
}

fn fill(options: &Options, path: &Path, migrations: &[schema::Migration]) -> Result<()> {
    let mut connection = connect::create(options, path)?;
    connection.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON;",
    )?;
    connection.pragma_update(None, "journal_mode", "MEMORY")?;
    schema::migrate(&mut connection, migrations)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection
        .close()
        .map_err(|(_, error)| Error::Unavailable(Disk::from_sqlite(error)))
}

/// Closed to other users. SQLite gives its other files the mode of the database.
fn keep_private(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_ours && metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn place(new: &Path, path: &Path, durable: Durable) -> io::Result<()> {
    keep_private(new)?;
    if durable == Durable::Yes {
        File::open(new)?.sync_all()?;
    }
    match fs::hard_link(new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        // Not every file system has links.
        Err(_) if !path.exists() => fs::rename(new, path)?,
        linked => linked?,
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    if durable == Durable::Yes {
        File::open(dir)?.sync_all()?;
        // The directory itself may be new. One above that cannot be read is not ours to sync.
        if let Some(above) = dir.parent().and_then(|above| File::open(above).ok()) {
            above.sync_all()?;
        }
    }
    Ok(())
}

/// An error of the file system in the words of the store.
pub fn of_io(error: io::Error) -> Disk {
    match error.kind() {
        io::ErrorKind::StorageFull => Disk::Full,
        io::ErrorKind::ReadOnlyFilesystem => Disk::ReadOnly,
        _ => Disk::Dir(Arc::new(error)),
    }
}
