//! An open file: it asks the plan about each operation, and passes the operation on to the real file.
#![expect(
    unsafe_code,
    reason = "a file's methods are C functions that SQLite calls with raw pointers"
)]

use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods};

use super::plan::{FileKind, Op, Plan, Verdict};

/// SQLite's object for an open file. The file object of the real VFS follows it in memory.
#[repr(C)]
pub(super) struct ShimFile {
    /// SQLite looks at this part only, so it comes first.
    base: sqlite3_file,
    plan: &'static Plan,
    /// None for a file that never fails.
    kind: Option<FileKind>,
}

/// The size of a [`ShimFile`], in the type that SQLite uses.
pub(super) const SIZE: c_int = size_of::<ShimFile>() as c_int;
// The real file object follows directly, and SQLite aligns file objects to eight bytes.
const _: () = assert!(size_of::<ShimFile>().is_multiple_of(8) && align_of::<ShimFile>() <= 8);

impl ShimFile {
    pub(super) fn new(
        methods: &'static sqlite3_io_methods,
        plan: &'static Plan,
        kind: Option<FileKind>,
    ) -> Self {
        let base = sqlite3_file { pMethods: methods };
        Self { base, plan, kind }
    }
}

/// Our methods for a file with these real methods. SQLite derives from the version what a file can do (2: shared
/// memory, 3: memory maps), so ours must not be higher than that of the real file.
pub(super) fn methods_for(real: &sqlite3_io_methods) -> &'static sqlite3_io_methods {
    static METHODS: [sqlite3_io_methods; 3] = [methods(1), methods(2), methods(3)];
    let [plain, shared, mapped] = &METHODS;
    match real.iVersion {
        // Some of the platform's files are of a later version, but without shared memory.
        _ if real.xShmMap.is_none() => plain,
        ..=1 => plain,
        2 => shared,
        3.. => mapped,
    }
}

const fn methods(version: c_int) -> sqlite3_io_methods {
    sqlite3_io_methods {
        iVersion: version,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        xLock: Some(lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(check_reserved_lock),
        xFileControl: Some(file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: Some(shm_map),
        xShmLock: Some(shm_lock),
        xShmBarrier: Some(shm_barrier),
        xShmUnmap: Some(shm_unmap),
        xFetch: Some(fetch),
        xUnfetch: Some(unfetch),
    }
}

/// The real file that one of our files wraps.
///
/// # Safety
///
/// `file` must point to the `szOsFile` bytes of a file of our VFS.
pub(super) unsafe fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: our VFS asks for room for both.
    unsafe { file.cast::<ShimFile>().add(1).cast() }
}

/// # Safety
///
/// `file` must be one that our VFS has opened.
unsafe fn verdict(file: *mut sqlite3_file, op: Op) -> Verdict {
    // SAFETY: opening wrote a `ShimFile` there.
    let shim = unsafe { &*file.cast::<ShimFile>() };
    shim.kind
        .map_or(Verdict::Pass, |kind| shim.plan.decide(kind, op))
}

/// Calls the real file's method of that name, or gives the fallback if it has none.
macro_rules! forward {
    ($file:expr, $method:ident($($arg:expr),*), $fallback:expr) => {{
        // SAFETY: SQLite calls these functions with a file that our VFS opened.
        let real = unsafe { real($file) };
        // SAFETY: a file of ours is open only if the real one is, and has its methods.
        match unsafe { (*(*real).pMethods).$method } {
            // SAFETY: the arguments are SQLite's own, and the file is the method's.
            Some(call) => unsafe { call(real, $($arg),*) },
            None => $fallback,
        }
    }};
}

/// Forwards unless the plan refuses or pretends.
macro_rules! judged {
    ($file:expr, $op:expr, $method:ident($($arg:expr),*), $fallback:expr) => {
        // SAFETY: SQLite calls these functions with a file that our VFS opened.
        match unsafe { verdict($file, $op) } {
            Verdict::Refuse(code) => code,
            Verdict::Pretend => ffi::SQLITE_OK,
            Verdict::Pass | Verdict::Cut(..) | Verdict::Demote => {
                forward!($file, $method($($arg),*), $fallback)
            }
        }
    };
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    forward!(file, xClose(), ffi::SQLITE_OK)
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    judged!(
        file,
        Op::Read,
        xRead(to, amount, offset),
        ffi::SQLITE_IOERR_READ
    )
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls this with a file that our VFS opened.
    let (amount, then) = match unsafe { verdict(file, Op::Write) } {
        Verdict::Refuse(code) => return code,
        Verdict::Pretend => return ffi::SQLITE_OK,
        Verdict::Cut(bytes, code) => {
            let amount = c_int::try_from(bytes).map_or(amount, |bytes| bytes.min(amount));
            (amount, Some(code))
        }
        Verdict::Pass | Verdict::Demote => (amount, None),
    };
    // SQLite never asks a VFS to write nothing, so neither do we.
    if let (0, Some(code)) = (amount, then) {
        return code;
    }
    let done = forward!(file, xWrite(from, amount, offset), ffi::SQLITE_IOERR_WRITE);
    match then {
        Some(code) if done == ffi::SQLITE_OK => code,
        _ => done,
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    judged!(
        file,
        Op::Truncate,
        xTruncate(size),
        ffi::SQLITE_IOERR_TRUNCATE
    )
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    judged!(file, Op::Sync, xSync(flags), ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    forward!(file, xFileSize(out), ffi::SQLITE_IOERR_FSTAT)
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    let op = if level <= ffi::SQLITE_LOCK_SHARED {
        Op::ReadLock
    } else {
        Op::WriteLock
    };
    judged!(file, op, xLock(level), ffi::SQLITE_IOERR_LOCK)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file, xUnlock(level), ffi::SQLITE_IOERR_UNLOCK)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    forward!(
        file,
        xCheckReservedLock(out),
        ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
    )
}

unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    what: c_int,
    argument: *mut c_void,
) -> c_int {
    forward!(file, xFileControl(what, argument), ffi::SQLITE_NOTFOUND)
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // Zero leaves the choice to SQLite.
    forward!(file, xSectorSize(), 0)
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    forward!(file, xDeviceCharacteristics(), 0)
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    forward!(
        file,
        xShmMap(region, size, extend, out),
        ffi::SQLITE_IOERR_SHMMAP
    )
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite3_file,
    slot: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // Slot 0 is the writer's. The readers' slots stay out of this: SQLite takes a busy one for
    // a race, and tries again for ten seconds.
    let taking = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_EXCLUSIVE;
    if slot == 0 && flags & taking == taking {
        judged!(
            file,
            Op::WriteLock,
            xShmLock(slot, count, flags),
            ffi::SQLITE_IOERR_SHMLOCK
        )
    } else {
        forward!(
            file,
            xShmLock(slot, count, flags),
            ffi::SQLITE_IOERR_SHMLOCK
        )
    }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    forward!(file, xShmBarrier(), ())
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    forward!(file, xShmUnmap(delete), ffi::SQLITE_OK)
}

unsafe extern "C" fn fetch(
    file: *mut sqlite3_file,
    offset: sqlite3_int64,
    amount: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: opening wrote a `ShimFile` there.
    let shim = unsafe { &*file.cast::<ShimFile>() };
    if shim.kind.is_some_and(|kind| shim.plan.watches_reads(kind)) {
        // No map to be had makes SQLite read instead, where the fault waits.
        // SAFETY: SQLite gives a place for the answer.
        unsafe { *out = ptr::null_mut() };
        return ffi::SQLITE_OK;
    }
    forward!(file, xFetch(offset, amount, out), ffi::SQLITE_IOERR_MMAP)
}

unsafe extern "C" fn unfetch(
    file: *mut sqlite3_file,
    offset: sqlite3_int64,
    at: *mut c_void,
) -> c_int {
    forward!(file, xUnfetch(offset, at), ffi::SQLITE_OK)
}
