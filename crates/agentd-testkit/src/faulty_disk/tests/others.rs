//! Faults that begin or end after a number of operations, and faults of locks, reads, opens and journals.

use std::time::Instant;

use super::*;

#[test]
fn a_fault_waits_for_its_turn_and_goes_away() {
    let bench = Bench::new();
    let db = bench.wal();
    let before = bench.disk.counts_of(FileKind::Wal).syncs;
    let fault = Fault::new(FileKind::Wal, Op::Sync, How::Io);
    bench.disk.fail(fault.after(2).times(2));
    let worked: Vec<bool> = (0..6).map(|x| insert(&db, x).is_ok()).collect();
    assert_eq!(worked, [true, true, false, false, true, true]);
    assert_eq!(rows(&db), [0, 1, 4, 5]);
    assert_eq!(bench.disk.counts_of(FileKind::Wal).syncs, before + 6);
    assert_eq!(bench.disk.counts().faults, 2);
}

#[test]
fn faults_are_asked_in_order_and_a_clone_is_the_same_disk() {
    let bench = Bench::new();
    let db = bench.wal();
    let disk = bench.disk.clone();
    disk.fail(Fault::new(FileKind::Any, Op::Write, How::NoSpace).times(1));
    disk.fail(Fault::new(FileKind::Wal, Op::Write, How::Io).times(1));
    disk.fail(Fault::new(FileKind::Wal, Op::Write, How::Io).times(0));
    assert_eq!(code(insert(&db, 1)), ffi::SQLITE_FULL);
    assert_eq!(code(insert(&db, 1)), ffi::SQLITE_IOERR_WRITE);
    insert(&db, 1).unwrap();
    assert_eq!(bench.disk.counts(), disk.counts());
    assert_ne!(bench.disk.vfs(), FaultyDisk::new().unwrap().vfs());
}

#[test]
fn each_disk_has_its_own_faults() {
    let bench = Bench::new();
    let (ill, other) = (bench.wal(), FaultyDisk::new().unwrap());
    let flags = OpenFlags::default();
    let well = Connection::open_with_flags_and_vfs(bench.path("a.db"), flags, other.vfs()).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Write, How::NoSpace));
    assert_eq!(code(insert(&ill, 1)), ffi::SQLITE_FULL);
    insert(&well, 2).unwrap();
    assert_eq!(rows(&ill), [2]);
}

#[test]
fn another_writer_seems_to_hold_the_lock() {
    let bench = Bench::new();
    for db in [bench.journal(), bench.wal()] {
        let fault = Fault::new(FileKind::Database, Op::WriteLock, How::Busy);
        bench.disk.fail(fault);
        assert_eq!(code(db.execute_batch("BEGIN IMMEDIATE")), ffi::SQLITE_BUSY);
        assert_eq!(code(insert(&db, 1)), ffi::SQLITE_BUSY);
        rows(&db);
        bench.disk.heal();
        insert(&db, 1).unwrap();

        // A busy handler outwaits it.
        db.busy_timeout(Duration::from_secs(30)).unwrap();
        bench.disk.fail(fault.times(3));
        db.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
        assert_eq!(bench.disk.counts_of(FileKind::Wal).faults, 0);
    }
    assert_eq!(bench.disk.counts_of(FileKind::Database).faults, 2 * (2 + 3));
}

#[test]
fn another_process_seems_to_hold_the_whole_database() {
    let bench = Bench::new();
    insert(&bench.wal(), 1).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Database, Op::ReadLock, How::Busy));
    let db = bench.connect().unwrap();
    let count = || db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(count()), ffi::SQLITE_BUSY);
    bench.disk.heal();
    assert_eq!(count().unwrap(), 1);
}

#[test]
fn a_read_fails_with_and_without_a_memory_map() {
    for map in [0, 1 << 20] {
        let bench = Bench::new();
        let db = bench.wal();
        insert(&db, 1).unwrap();
        db.execute_batch("CREATE TABLE u(x)").unwrap();
        checkpoint(&db).unwrap();
        db.pragma_update(None, "mmap_size", map).unwrap();
        db.execute_batch("PRAGMA shrink_memory").unwrap();
        // The first page is never mapped, nor is the last one: the second tells.
        let fault = Fault::new(FileKind::Database, Op::Read, How::Io);
        bench.disk.fail(fault.after(1));
        let read = db.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0));
        assert_eq!(code(read), ffi::SQLITE_IOERR_READ);
        bench.disk.heal();
        assert_eq!(rows(&db), [1]);
    }
}

#[test]
fn a_file_system_mounted_for_reading_only() {
    let bench = Bench::new();
    insert(&bench.journal(), 1).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Any, Op::Open, How::ReadOnly));
    let db = bench.connect().unwrap();
    assert!(db.is_readonly("main").unwrap());
    assert_eq!(rows(&db), [1]);
    assert_eq!(code(insert(&db, 2)), ffi::SQLITE_READONLY);
    bench.disk.heal();

    let db = bench.wal();
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Write, How::ReadOnly));
    assert_eq!(code(insert(&db, 2)), ffi::SQLITE_READONLY);
    bench.disk.heal();
    insert(&db, 3).unwrap();
    assert_eq!(rows(&db), [1, 3]);
}

#[test]
fn a_file_that_does_not_open() {
    let bench = Bench::new();
    bench
        .disk
        .fail(Fault::new(FileKind::Database, Op::Open, How::Io));
    assert_eq!(code(bench.connect()), ffi::SQLITE_CANTOPEN);
    assert!(!bench.path("a.db").exists());
    bench.disk.heal();

    insert(&bench.wal(), 1).unwrap();
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Open, How::Io));
    let db = bench.connect().unwrap();
    let read = db.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(code(read), ffi::SQLITE_CANTOPEN);
    bench.disk.heal();
    assert_eq!(rows(&db), [1]);
}

#[test]
fn a_rollback_journal_fails_too() {
    let bench = Bench::new();
    let db = bench.journal();
    insert(&db, 1).unwrap();
    let faults = [
        (Op::Open, How::Io, ffi::SQLITE_CANTOPEN),
        (Op::Write, How::NoSpace, ffi::SQLITE_FULL),
        (Op::Sync, How::Io, ffi::SQLITE_IOERR_FSYNC),
        (Op::Delete, How::Io, ffi::SQLITE_IOERR_DELETE),
    ];
    for (op, how, expected) in faults {
        let fault = Fault::new(FileKind::Journal, op, how).times(1);
        bench.disk.fail(fault);
        assert_eq!(code(insert(&db, 2)), expected, "{fault:?}");
        assert_eq!(rows(&db), [1]);
        assert_eq!(bench.after_crash(), [1]);
    }
    // A write to the database fails when the journal is already there to undo it.
    let fault = Fault::new(FileKind::Database, Op::Write, How::Short { bytes: 100 });
    bench.disk.fail(fault.after(1).times(1));
    assert_eq!(code(insert(&db, 2)), ffi::SQLITE_IOERR_WRITE);
    assert_eq!(rows(&db), [1]);
    insert(&db, 3).unwrap();
    assert_eq!(rows(&db), [1, 3]);
}

#[test]
fn a_disk_that_lies() {
    let bench = Bench::new();
    let db = bench.wal();
    insert(&db, 1).unwrap();
    // A sync that is left out makes no difference while the power is on.
    bench
        .disk
        .fail(Fault::new(FileKind::Any, Op::Sync, How::Dropped));
    insert(&db, 2).unwrap();
    assert_eq!(bench.after_crash(), [1, 2]);
    // A lost write does: a reader of the file does not see it.
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Write, How::Dropped));
    insert(&db, 3).unwrap();
    assert_eq!(bench.after_crash(), [1, 2]);
}

#[test]
fn temporary_files_never_fail() {
    let bench = Bench::new();
    let db = bench.wal();
    for op in [Op::Open, Op::Read, Op::Write, Op::Sync, Op::Truncate] {
        bench.disk.fail(Fault::new(FileKind::Any, op, How::Io));
    }
    // Enough rows to leave the page cache.
    db.execute_batch(
        "PRAGMA temp_store=file; PRAGMA temp.cache_size=10; CREATE TEMP TABLE s(x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
         INSERT INTO s SELECT randomblob(1000) FROM n",
    )
    .unwrap();
    assert_eq!(bench.disk.counts().faults, 0);
}

#[test]
fn a_slow_disk_works_late() {
    let bench = Bench::new();
    let db = bench.wal();
    let slow = How::Slow(Duration::from_millis(40));
    bench
        .disk
        .fail(Fault::new(FileKind::Wal, Op::Sync, slow).times(2));
    bench.disk.fail(
        Fault::new(FileKind::Wal, Op::Sync, How::Io)
            .after(1)
            .times(1),
    );
    let start = Instant::now();
    insert(&db, 1).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(40));
    // Late, and then wrong after all.
    assert_eq!(code(insert(&db, 2)), ffi::SQLITE_IOERR_FSYNC);
    assert!(start.elapsed() >= Duration::from_millis(80));
    assert_eq!(bench.disk.counts().faults, 3);
}
