//! The name of this process, as `ps` and `pgrep` show it.

use std::ffi::CStr;

/// Names the calling thread, which is the process where it is the first one. Threads and forks that it starts inherit the
/// name; a program that is executed does not.
pub fn set_name(name: &CStr) {
    // A process works without its name too.
    let _unnamed = rustix::thread::set_name(name);
}
