//! A disk for SQLite that fails when told to.
//!
//! [`FaultyDisk`] registers a VFS that passes every operation on to the platform's VFS, so the files are real files on
//! a real disk. Before that, it checks a list of [`Fault`]s: one of them may make the operation fail. Without a fault it
//! is transparent: a connection through it and one through the default VFS can share a database.
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
    /// Registers a new disk without faults.
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

    /// Adds a fault. It also applies to open connections.
    ///
    /// The faults are checked in the order in which they were added, and the first one that applies decides. A
    /// [`How::Slow`] only delays the operation; the next fault that applies decides.
    pub fn fail(&self, fault: Fault) {
        self.plan.arm(fault);
    }

    /// Removes every fault. The counts stay.
    pub fn heal(&self) {
        self.plan.heal();
    }

    /// The operations since the disk was created, whether they failed or not.
    pub fn counts(&self) -> Counts {
        self.plan.counts(FileKind::Any)
    }

    /// The same for one kind of file.
    pub fn counts_of(&self, file: FileKind) -> Counts {
        self.plan.counts(file)
    }
}
