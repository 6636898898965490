//! Which operations fail, and how: the part without pointers and unsafe code.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::ffi;

/// A file of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Any of the three below.
    Any,
    /// The database itself.
    Database,
    /// Its write-ahead log.
    Wal,
    /// Its rollback journal. SQLite in WAL mode has none.
    Journal,
}

impl FileKind {
    /// The kind of a file opened with these flags, unless it is one that never fails.
    pub(super) fn of_flags(flags: c_int) -> Option<Self> {
        if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
            Some(Self::Database)
        } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
            Some(Self::Wal)
        } else if flags & ffi::SQLITE_OPEN_MAIN_JOURNAL != 0 {
            Some(Self::Journal)
        } else {
            None
        }
    }

    /// The kind of a file that is about to be deleted. SQLite passes only its name.
    pub(super) fn of_path(path: &[u8]) -> Option<Self> {
        if path.ends_with(b"-wal") {
            Some(Self::Wal)
        } else if path.ends_with(b"-journal") {
            Some(Self::Journal)
        } else {
            None
        }
    }

    fn covers(self, other: Self) -> bool {
        self == Self::Any || self == other
    }
}

/// An operation that SQLite requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Opening, which also creates.
    Open,
    /// Reading. While such a fault exists, no new part of a file is read through a memory map.
    Read,
    Write,
    Sync,
    Truncate,
    /// Removing a WAL or a journal; the latter is how a rollback-mode transaction commits.
    Delete,
    /// The shared lock on the database. In WAL mode a connection takes it once and keeps it.
    ReadLock,
    /// The right to write: a lock above the shared one, or the writer's slot of a WAL. Counts as
    /// an operation on the database.
    WriteLock,
}

/// How an operation fails. A way that makes no sense for its [`Op`] has the effect of [`How::Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A write, sync or truncation returns `SQLITE_FULL`, and nothing is done.
    NoSpace,
    /// The operation returns its I/O error, and nothing is done.
    Io,
    /// Only the first bytes are written, and the write returns `SQLITE_IOERR_WRITE`. If `bytes` is larger than the
    /// write, all of it is written: a successful write that reports a failure.
    Short { bytes: usize },
    /// A write, sync, truncation or deletion reports success and does nothing.
    Dropped,
    /// The operation succeeds after this delay.
    Slow(Duration),
    /// A write, truncation or deletion returns `SQLITE_READONLY`. An existing file is opened for reading only, as on a
    /// read-only file system.
    ReadOnly,
    /// A lock returns `SQLITE_BUSY`. Each attempt of a busy handler is a separate operation.
    Busy,
}

/// One fault of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: FileKind,
    pub on: Op,
    pub how: How,
    /// The number of matching operations that succeed first.
    pub after: u64,
    /// The number of operations that fail after that; without a number, all of them until the disk is healed.
    pub times: Option<u64>,
}

impl Fault {
    /// A fault of all matching operations, until the disk is healed.
    pub fn new(file: FileKind, on: Op, how: How) -> Self {
        Self {
            file,
            on,
            how,
            after: 0,
            times: None,
        }
    }

    /// Lets this many matching operations succeed first.
    #[must_use]
    pub fn after(mut self, operations: u64) -> Self {
        self.after = operations;
        self
    }

    /// Limits the fault to this many operations.
    #[must_use]
    pub fn times(mut self, operations: u64) -> Self {
        self.times = Some(operations);
        self
    }

    fn matches(&self, file: FileKind, op: Op) -> bool {
        self.file.covers(file) && self.on == op
    }

    fn spent(&self) -> bool {
        self.times == Some(0)
    }
}

/// The operations of a disk, whether they failed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub opens: u64,
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    pub truncates: u64,
    pub deletes: u64,
    pub read_locks: u64,
    pub write_locks: u64,
    /// How often a fault was applied, including delays.
    pub faults: u64,
}

impl Counts {
    fn note(&mut self, op: Op) {
        let count = match op {
            Op::Open => &mut self.opens,
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Sync => &mut self.syncs,
            Op::Truncate => &mut self.truncates,
            Op::Delete => &mut self.deletes,
            Op::ReadLock => &mut self.read_locks,
            Op::WriteLock => &mut self.write_locks,
        };
        *count += 1;
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            opens: self.opens + other.opens,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            syncs: self.syncs + other.syncs,
            truncates: self.truncates + other.truncates,
            deletes: self.deletes + other.deletes,
            read_locks: self.read_locks + other.read_locks,
            write_locks: self.write_locks + other.write_locks,
            faults: self.faults + other.faults,
        }
    }
}

/// What happens to one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// It is not done, and returns this code.
    Refuse(c_int),
    /// Only its first bytes are written, and it returns this code.
    Cut(usize, c_int),
    /// It is not done, and reports success.
    Pretend,
    /// Opened for reading only.
    Demote,
}

/// The faults and the counts of a disk, shared by all of its connections.
#[derive(Debug, Default)]
pub(super) struct Plan(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    armed: Vec<Fault>,
    database: Counts,
    wal: Counts,
    journal: Counts,
}

impl Plan {
    // A panic in a test's thread must not turn into one inside SQLite.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn arm(&self, fault: Fault) {
        if !fault.spent() {
            self.state().armed.push(fault);
        }
    }

    pub(super) fn heal(&self) {
        self.state().armed.clear();
    }

    pub(super) fn counts(&self, file: FileKind) -> Counts {
        let state = self.state();
        [
            (FileKind::Database, &state.database),
            (FileKind::Wal, &state.wal),
            (FileKind::Journal, &state.journal),
        ]
        .into_iter()
        .filter(|(kind, _)| file.covers(*kind))
        .fold(Counts::default(), |sum, (_, counts)| sum.plus(counts))
    }

    /// Whether each read of this file must be a separate operation, without a memory map.
    pub(super) fn watches_reads(&self, file: FileKind) -> bool {
        let state = self.state();
        state
            .armed
            .iter()
            .any(|fault| fault.matches(file, Op::Read))
    }

    /// Counts an operation, waits for its delay, and returns what happens to it.
    pub(super) fn decide(&self, file: FileKind, op: Op) -> Verdict {
        let (delay, verdict) = self.state().decide(file, op);
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        verdict
    }
}

impl State {
    fn decide(&mut self, file: FileKind, op: Op) -> (Duration, Verdict) {
        let mut delay = Duration::ZERO;
        let mut verdict = Verdict::Pass;
        let mut fired = 0;
        for fault in self.armed.iter_mut().filter(|it| it.matches(file, op)) {
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            fired += 1;
            fault.times = fault.times.map(|left| left.saturating_sub(1));
            if let How::Slow(by) = fault.how {
                delay = delay.saturating_add(by);
            } else {
                verdict = outcome(op, fault.how);
                break;
            }
        }
        self.armed.retain(|fault| !fault.spent());
        let counts = match file {
            FileKind::Database | FileKind::Any => &mut self.database,
            FileKind::Wal => &mut self.wal,
            FileKind::Journal => &mut self.journal,
        };
        counts.note(op);
        counts.faults += fired;
        (delay, verdict)
    }
}

fn outcome(op: Op, how: How) -> Verdict {
    match (how, op) {
        (How::Slow(_), _) => Verdict::Pass,
        (How::NoSpace, Op::Write | Op::Sync | Op::Truncate) => Verdict::Refuse(ffi::SQLITE_FULL),
        (How::Short { bytes }, Op::Write) => Verdict::Cut(bytes, io_error(op)),
        (How::Dropped, Op::Write | Op::Sync | Op::Truncate | Op::Delete) => Verdict::Pretend,
        (How::ReadOnly, Op::Write | Op::Truncate | Op::Delete) => {
            Verdict::Refuse(ffi::SQLITE_READONLY)
        }
        (How::ReadOnly, Op::Open) => Verdict::Demote,
        (How::Busy, Op::ReadLock | Op::WriteLock) => Verdict::Refuse(ffi::SQLITE_BUSY),
        _ => Verdict::Refuse(io_error(op)),
    }
}

fn io_error(op: Op) -> c_int {
    match op {
        Op::Open => ffi::SQLITE_CANTOPEN,
        Op::Read => ffi::SQLITE_IOERR_READ,
        Op::Write => ffi::SQLITE_IOERR_WRITE,
        Op::Sync => ffi::SQLITE_IOERR_FSYNC,
        Op::Truncate => ffi::SQLITE_IOERR_TRUNCATE,
        Op::Delete => ffi::SQLITE_IOERR_DELETE,
        Op::ReadLock | Op::WriteLock => ffi::SQLITE_IOERR_LOCK,
    }
}
