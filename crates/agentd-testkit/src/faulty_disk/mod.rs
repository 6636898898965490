//! A disk for SQLite that fails when told to.
//!
//! [`FaultyDisk`] registers a VFS that hands every operation to the platform's own one, so the
//! files are real files on a real disk, and first asks a list of [`Fault`]s whether this
//! operation is to go wrong. With no fault armed it is transparent: a connection through it and
//! one through the default VFS can share a database.
//!
//! ```no_run
//! # use rusqlite::{Connection, OpenFlags};
//! # use agentd_testkit::faulty_disk::{Fault, FaultyDisk, FileKind, How, Op};
//! # fn main() -> rusqlite::Result<()> {
//! let disk = FaultyDisk::new()?;
//! let db = Connection::open_with_flags_and_vfs("a.db", OpenFlags::default(), disk.vfs())?;
//! disk.fail(Fault::new(FileKind::Wal, Op::Write, How::NoSpace).after(3));
//! // ... the fourth write to the WAL and all later ones say the disk is full ...
//! disk.heal();
//! # Ok(()) }
//! ```
//!
//! Only the database, its WAL and its rollback journal are ever touched; temporary files and the
//! WAL index (`-shm`) are not. What was written but never synced stays readable: this disk
//! refuses work, it does not lose power. A test of a crash copies the files away and opens the
//! copy.

mod file;
mod plan;
mod vfs;

#[cfg(test)]
mod tests;

pub use plan::{Counts, Fault, FileKind, How, Op};

use std::sync::atomic::{AtomicU64, Ordering};

use plan::Plan;

/// A disk that fails when told to, under a VFS name of its own. A clone is the same disk.
///
/// The VFS stays registered, and its few hundred bytes allocated, until the process ends: SQLite
/// cannot say whether a connection still uses one, and this is for tests.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    name: &'static str,
    plan: &'static Plan,
}

impl FaultyDisk {
    /// Registers a new disk with nothing wrong with it.
    pub fn new() -> rusqlite::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("faulty-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let plan: &'static Plan = Box::leak(Box::default());
        vfs::register(&name, plan)?;
        Ok(Self {
            name: name.leak(),
            plan,
        })
    }

    /// The VFS to open a connection with.
    pub fn vfs(&self) -> &str {
        self.name
    }

    /// Arms one more fault, for connections already open too.
    ///
    /// An operation is offered to the faults in the order they were armed, and the first that is
    /// due decides; a [`How::Slow`] only delays, and lets the next ones decide.
    pub fn fail(&self, fault: Fault) {
        self.plan.arm(fault);
    }

    /// Takes every fault away. The counts stay.
    pub fn heal(&self) {
        self.plan.heal();
    }

    /// What was asked of the disk since it was made, refused or not.
    pub fn counts(&self) -> Counts {
        self.plan.counts(FileKind::Any)
    }

    /// The same for one kind of file.
    pub fn counts_of(&self, file: FileKind) -> Counts {
        self.plan.counts(file)
    }
}
