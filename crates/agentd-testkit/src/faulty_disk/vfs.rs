//! The VFS: it opens and deletes files, and passes everything else on to the real VFS.
#![expect(
    unsafe_code,
    reason = "a VFS is a table of C functions that SQLite calls with raw pointers"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_vfs};

use super::file::{self, ShimFile};
use super::plan::{FileKind, Op, Plan, Verdict};

/// What a registered VFS points to. It is never freed, because SQLite may use it until the process ends.
struct Shim {
    real: *mut sqlite3_vfs,
    plan: &'static Plan,
}

type DlSymbol = Option<unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char)>;

/// Registers a VFS that wraps the platform's default one and follows `plan`.
pub(super) fn register(name: &str, plan: &'static Plan) -> rusqlite::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: a null name asks for the default VFS; SQLite initializes itself if need be.
    let real = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: null, or a VFS that SQLite keeps until the process ends.
    let Some(base) = (unsafe { real.as_ref() }) else {
        return Err(failure(ffi::SQLITE_NOTFOUND, "no default VFS"));
    };
    let ours = sqlite3_vfs {
        // Version 3 only adds replacing system calls, which would reach past this disk.
        iVersion: base.iVersion.min(2),
        szOsFile: file::SIZE + base.szOsFile,
        mxPathname: base.mxPathname,
        pNext: ptr::null_mut(),
        zName: name.into_raw(),
        pAppData: Box::into_raw(Box::new(Shim { real, plan })).cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: base.xDlOpen.and(Some(dl_open)),
        xDlError: base.xDlError.and(Some(dl_error)),
        xDlSym: base.xDlSym.and(Some(dl_sym)),
        xDlClose: base.xDlClose.and(Some(dl_close)),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: base.xGetLastError.and(Some(get_last_error)),
        xCurrentTimeInt64: base.xCurrentTimeInt64.and(Some(current_time_int64)),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    // SAFETY: the VFS, its name and its data are leaked, so they outlive every use.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 0) };
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(failure(code, "the VFS could not be registered"))
    }
}

fn failure(code: c_int, message: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message.to_owned()))
}

/// # Safety
///
/// `vfs` must be one that [`register`] made.
unsafe fn shim(vfs: *mut sqlite3_vfs) -> &'static Shim {
    // SAFETY: `register` put a leaked `Shim` there, and nothing changes it.
    unsafe { &*(*vfs).pAppData.cast::<Shim>() }
}

/// Calls the real VFS's method of that name, or gives the fallback if it has none.
macro_rules! forward {
    ($vfs:expr, $method:ident($($arg:expr),*), $fallback:expr) => {{
        // SAFETY: SQLite calls these functions with the VFS they were registered in.
        let real = unsafe { shim($vfs) }.real;
        // SAFETY: a VFS that SQLite gave out lives on.
        match unsafe { (*real).$method } {
            // SAFETY: the arguments are SQLite's own, and the VFS is the method's.
            Some(call) => unsafe { call(real, $($arg),*) },
            None => $fallback,
        }
    }};
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    out: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SQLite closes a file whose methods are set even if it was not opened.
    // SAFETY: SQLite gives `szOsFile` bytes of room, which hold a `sqlite3_file` and more.
    unsafe { (*out).pMethods = ptr::null() };
    // SAFETY: the VFS is ours.
    let plan = unsafe { shim(vfs) }.plan;
    let kind = FileKind::of_flags(flags);
    let verdict = kind.map_or(Verdict::Pass, |kind| plan.decide(kind, Op::Open));
    let flags = match verdict {
        Verdict::Refuse(code) => return code,
        Verdict::Demote => {
            let writing =
                ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_EXCLUSIVE;
            flags & !writing | ffi::SQLITE_OPEN_READONLY
        }
        Verdict::Pass | Verdict::Pretend | Verdict::Cut(..) => flags,
    };
    // SAFETY: as above; the real file has its room behind ours.
    let real = unsafe { file::real(out) };
    // SAFETY: as above; the room may hold anything before this.
    unsafe { (*real).pMethods = ptr::null() };
    let code = forward!(
        vfs,
        xOpen(name, real, flags, out_flags),
        ffi::SQLITE_CANTOPEN
    );
    // SAFETY: null, or the static table of the VFS that just set it.
    if let Some(methods) = unsafe { (*real).pMethods.as_ref() } {
        let ours = ShimFile::new(file::methods_for(methods), plan, kind);
        // SAFETY: there is room for it, aligned as SQLite aligns every file object.
        unsafe { out.cast::<ShimFile>().write(ours) };
    }
    code
}

unsafe extern "C" fn delete(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    sync_directory: c_int,
) -> c_int {
    // SAFETY: SQLite gives a path that ends in a zero byte.
    let kind = FileKind::of_path(unsafe { CStr::from_ptr(name) }.to_bytes());
    // SAFETY: the VFS is ours.
    let plan = unsafe { shim(vfs) }.plan;
    match kind.map_or(Verdict::Pass, |kind| plan.decide(kind, Op::Delete)) {
        Verdict::Refuse(code) => code,
        Verdict::Pretend => ffi::SQLITE_OK,
        Verdict::Pass | Verdict::Cut(..) | Verdict::Demote => {
            forward!(vfs, xDelete(name, sync_directory), ffi::SQLITE_IOERR_DELETE)
        }
    }
}

unsafe extern "C" fn access(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    forward!(vfs, xAccess(name, flags, out), ffi::SQLITE_IOERR_ACCESS)
}

unsafe extern "C" fn full_pathname(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    forward!(
        vfs,
        xFullPathname(name, room, out),
        ffi::SQLITE_CANTOPEN_FULLPATH
    )
}

unsafe extern "C" fn dl_open(vfs: *mut sqlite3_vfs, name: *const c_char) -> *mut c_void {
    forward!(vfs, xDlOpen(name), ptr::null_mut())
}

unsafe extern "C" fn dl_error(vfs: *mut sqlite3_vfs, room: c_int, out: *mut c_char) {
    forward!(vfs, xDlError(room, out), ())
}

unsafe extern "C" fn dl_sym(
    vfs: *mut sqlite3_vfs,
    library: *mut c_void,
    symbol: *const c_char,
) -> DlSymbol {
    forward!(vfs, xDlSym(library, symbol), None)
}

unsafe extern "C" fn dl_close(vfs: *mut sqlite3_vfs, library: *mut c_void) {
    forward!(vfs, xDlClose(library), ())
}

unsafe extern "C" fn randomness(vfs: *mut sqlite3_vfs, room: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xRandomness(room, out), 0)
}

unsafe extern "C" fn sleep(vfs: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    forward!(vfs, xSleep(microseconds), 0)
}

unsafe extern "C" fn current_time(vfs: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    forward!(vfs, xCurrentTime(out), ffi::SQLITE_ERROR)
}

unsafe extern "C" fn get_last_error(vfs: *mut sqlite3_vfs, room: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xGetLastError(room, out), 0)
}

unsafe extern "C" fn current_time_int64(vfs: *mut sqlite3_vfs, out: *mut sqlite3_int64) -> c_int {
    forward!(vfs, xCurrentTimeInt64(out), ffi::SQLITE_ERROR)
}
