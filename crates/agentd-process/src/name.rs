//! The name of this process, as `ps` and `pgrep` show it.

use std::ffi::CStr;

/// Names the calling thread. The name of the main thread is shown as the name of the process. Threads and child
/// processes inherit the name until they execute another program.
pub fn set_name(name: &CStr) {
    // The name is only for display, so an error is ignored.
    let _unnamed = rustix::thread::set_name(name);
}
