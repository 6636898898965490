//! The disk on real files: transparent when healthy, and SQLite's answer to each fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, ffi};
use tempfile::TempDir;

mod others;

use super::{Fault, FaultyDisk, FileKind, How, Op};

struct Bench {
    disk: FaultyDisk,
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            disk: FaultyDisk::new().unwrap(),
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::default();
        let db = Connection::open_with_flags_and_vfs(self.path("a.db"), flags, self.disk.vfs())?;
        db.busy_timeout(Duration::ZERO)?;
        Ok(db)
    }

    /// A connection that syncs every commit and leaves the WAL alone.
    fn wal(&self) -> Connection {
        let db = self.connect().unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.pragma_update(None, "synchronous", "full").unwrap();
        db.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x)").unwrap();
        db
    }

    fn journal(&self) -> Connection {
        let db = self.connect().unwrap();
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x)").unwrap();
        db
    }

    /// What a process would find if this one were killed now.
    fn after_crash(&self) -> Vec<i64> {
        for end in ["", "-wal", "-journal"] {
            let from = self.path(&format!("a.db{end}"));
            if from.exists() {
                fs::copy(from, self.path(&format!("copy.db{end}"))).unwrap();
            }
        }
        let found = rows_at(&self.path("copy.db"));
        for end in ["", "-wal", "-journal"] {
            drop(fs::remove_file(self.path(&format!("copy.db{end}"))));
        }
        found
    }
}

/// Reads the rows through the platform's VFS, and checks the integrity of the database.
fn rows_at(path: &Path) -> Vec<i64> {
    let db = Connection::open(path).unwrap();
    sound(&db);
    rows(&db)
}

fn rows(db: &Connection) -> Vec<i64> {
    let mut query = db.prepare("SELECT x FROM t ORDER BY x").unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

fn sound(db: &Connection) {
    let answer: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok");
}

fn insert(db: &Connection, x: i64) -> rusqlite::Result<()> {
    db.execute("INSERT INTO t VALUES (?1)", [x]).map(drop)
}

fn checkpoint(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> i32 {
    result.unwrap_err().sqlite_error().unwrap().extended_code
}

#[test]
fn a_healthy_disk_is_transparent_in_wal_mode() {
    let bench = Bench::new();
    let (one, two) = (bench.wal(), bench.wal());
    insert(&one, 1).unwrap();
    insert(&two, 2).unwrap();
    assert_eq!(rows(&one), [1, 2]);
    assert_eq!(rows(&two), [1, 2]);
    assert_eq!(rows_at(&bench.path("a.db")), [1, 2]);

    assert!(fs::metadata(bench.path("a.db-wal")).unwrap().len() > 0);
    assert_eq!(checkpoint(&one).unwrap(), 0);
    assert_eq!(fs::metadata(bench.path("a.db-wal")).unwrap().len(), 0);
    assert_eq!(rows(&two), [1, 2]);
    sound(&two);

    // A reader's snapshot and a second writer: shared memory does its work.
    one.execute_batch("BEGIN; SELECT * FROM t; INSERT INTO t VALUES (3)")
        .unwrap();
    assert_eq!(code(insert(&two, 4)), ffi::SQLITE_BUSY);
    assert_eq!(rows(&two), [1, 2]);
    one.execute_batch("COMMIT").unwrap();
    assert_eq!(rows(&two), [1, 2, 3]);

    drop((one, two));
    assert!(!bench.path("a.db-wal").exists());
    assert!(!bench.path("a.db-shm").exists());
    assert_eq!(rows_at(&bench.path("a.db")), [1, 2, 3]);
    let counts = bench.disk.counts();
    assert_eq!(counts.faults, 0);
    assert!(counts.opens > 0 && counts.reads > 0 && counts.writes > 0 && counts.syncs > 0);
    assert!(counts.read_locks > 0 && counts.write_locks > 0 && counts.deletes > 0);
}

#[test]
fn a_healthy_disk_is_transparent_to_everything_else() {
    let bench = Bench::new();
    let db = bench.journal();
    db.pragma_update(None, "mmap_size", 1 << 20).unwrap();
    db.execute_batch(
        "PRAGMA temp_store=file; CREATE TEMP TABLE s(x); INSERT INTO s VALUES (1), (2);
         BEGIN; INSERT INTO t SELECT x FROM s; ROLLBACK;
         INSERT INTO t SELECT x FROM s; DELETE FROM t WHERE x = 1; VACUUM;
         PRAGMA journal_mode=wal; INSERT INTO t VALUES (3); PRAGMA journal_mode=truncate;
         INSERT INTO t VALUES (4); PRAGMA journal_mode=delete",
    )
    .unwrap();
    let copy = bench.path("copy.db");
    db.execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    db.execute("ATTACH ?1 AS other", [copy.to_str().unwrap()])
        .unwrap();
    // A commit over two databases has a super-journal.
    db.execute_batch("BEGIN; INSERT INTO t VALUES (5); INSERT INTO other.t VALUES (6); COMMIT")
        .unwrap();
    assert_eq!(rows(&db), [2, 3, 4, 5]);
    drop(db);
    assert_eq!(rows_at(&bench.path("a.db")), [2, 3, 4, 5]);
    assert_eq!(rows_at(&copy), [2, 3, 4, 6]);
    assert!(bench.disk.counts_of(FileKind::Journal).writes > 0);
    assert!(bench.disk.counts_of(FileKind::Wal).writes > 0);
}

#[test]
fn many_threads_share_a_disk() {
    let bench = Bench::new();
    let first = bench.wal();
    bench.disk.fail(Fault::new(
        FileKind::Wal,
        Op::Write,
        How::Slow(Duration::from_micros(50)),
    ));
    thread::scope(|scope| {
        for thread in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                let db = bench.wal();
                db.busy_timeout(Duration::from_secs(30)).unwrap();
                for x in 0..25 {
                    insert(&db, thread * 25 + x).unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&first), (0..100).collect::<Vec<_>>());
    sound(&first);
    assert!(bench.disk.counts().faults >= 100);
}

#[test]
fn a_full_disk_refuses_a_commit_and_a_healed_one_takes_the_next() {
    let bench = Bench::new();
    let db = bench.wal();
    insert(&db, 1).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Write, How::NoSpace));
    db.execute_batch("BEGIN; INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(code(db.execute_batch("COMMIT")), ffi::SQLITE_FULL);
    assert!(db.is_autocommit(), "SQLite has rolled it back");
    assert_eq!(rows(&db), [1]);
    assert_eq!(code(insert(&db, 3)), ffi::SQLITE_FULL);
    // The database itself still has room.
    assert_eq!(checkpoint(&db).unwrap(), 0);

    bench.disk.heal();
    insert(&db, 4).unwrap();
    assert_eq!(rows(&db), [1, 4]);
    assert_eq!(bench.after_crash(), [1, 4]);
}

#[test]
fn a_failed_sync_refuses_a_commit() {
    let bench = Bench::new();
    let db = bench.wal();
    insert(&db, 1).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Sync, How::Io).times(1));
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)")
        .unwrap();
    assert_eq!(code(db.execute_batch("COMMIT")), ffi::SQLITE_IOERR_FSYNC);
    assert!(db.is_autocommit());
    assert_eq!(rows(&db), [1]);
    // Refused is not undone: the frames are in the WAL, and recovery takes them for committed.
    assert_eq!(bench.after_crash(), [1, 2]);
    // Until the next commit writes over them.
    insert(&db, 3).unwrap();
    assert_eq!(bench.after_crash(), [1, 3]);
}

#[test]
fn a_failed_checkpoint_loses_nothing() {
    let bench = Bench::new();
    let db = bench.wal();
    insert(&db, 1).unwrap();
    for (op, how, expected) in [
        (Op::Write, How::NoSpace, ffi::SQLITE_FULL),
        (
            Op::Write,
            How::Short { bytes: 100 },
            ffi::SQLITE_IOERR_WRITE,
        ),
        (Op::Sync, How::Io, ffi::SQLITE_IOERR_FSYNC),
    ] {
        let fault = Fault::new(FileKind::Database, op, how);
        bench.disk.fail(fault);
        assert_eq!(code(checkpoint(&db)), expected, "{fault:?}");
        assert_eq!(rows(&db), [1]);
        assert_eq!(bench.after_crash(), [1]);
        bench.disk.heal();
    }
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Truncate, How::Io));
    assert_eq!(code(checkpoint(&db)), ffi::SQLITE_IOERR_TRUNCATE);
    bench.disk.heal();
    assert_eq!(checkpoint(&db).unwrap(), 0);
    assert_eq!(bench.after_crash(), [1]);
}

#[test]
fn a_short_write_leaves_what_was_committed() {
    for bytes in [0, 1, 23, 24, 100, 4095] {
        let bench = Bench::new();
        let db = bench.wal();
        insert(&db, 1).unwrap();
        let size = || fs::metadata(bench.path("a.db-wal")).unwrap().len();
        let before = size();
        let fault = Fault::new(FileKind::Wal, Op::Write, How::Short { bytes });
        // A frame is a header and a page, each written on its own.
        bench.disk.fail(fault.after(1));
        assert_eq!(code(insert(&db, 2)), ffi::SQLITE_IOERR_WRITE);
        let kept = size() - before;
        assert_eq!(kept, 24 + u64::try_from(bytes).unwrap());
        assert_eq!(bench.after_crash(), [1]);
        drop(db);
        assert_eq!(rows_at(&bench.path("a.db")), [1]);
    }
}

#[test]
fn a_write_can_happen_and_be_denied() {
    let bench = Bench::new();
    let db = bench.wal();
    let fault = Fault::new(FileKind::Wal, Op::Write, How::Short { bytes: usize::MAX });
    bench.disk.fail(fault.after(1));
    assert_eq!(code(insert(&db, 1)), ffi::SQLITE_IOERR_WRITE);
    assert!(rows(&db).is_empty());
    assert_eq!(bench.after_crash(), [1]);
}
