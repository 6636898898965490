//! Creates a new database file that is complete from the moment it has its name.
//!
//! It is created under a temporary name without a single sync, synced once, and then linked to its name. SQLite
//! would sync several times to create an empty database in WAL mode.

use super::{Options, connect, schema};
use crate::error::{Disk, Error, Result};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the file must survive a power failure as soon as it exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    Yes,
    /// A cache.
    No,
}

/// Creates the file if it does not exist. If another process does the same, one of the two files is kept.
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
    // It has its final name by now, or is not needed.
    let _gone = fs::remove_file(&new);
    if options.is_injected_bug("state_open") {
        drop(fs::set_permissions(path, fs::Permissions::from_mode(0o666)));
    }
    made
}

/// A name that no other process or thread uses.
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

/// Makes the file private to the user. SQLite gives its other files the mode of the database.
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
        // Some file systems have no hard links.
        Err(_) if !path.exists() => fs::rename(new, path)?,
        linked => linked?,
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    if durable == Durable::Yes {
        File::open(dir)?.sync_all()?;
        // The directory itself may be new. A parent that cannot be read is not ours to sync.
        if let Some(above) = dir.parent().and_then(|above| File::open(above).ok()) {
            above.sync_all()?;
        }
    }
    Ok(())
}

/// A file system error as an error of the store.
pub fn of_io(error: io::Error) -> Disk {
    match error.kind() {
        io::ErrorKind::StorageFull => Disk::Full,
        io::ErrorKind::ReadOnlyFilesystem => Disk::ReadOnly,
        _ => Disk::Dir(Arc::new(error)),
    }
}
