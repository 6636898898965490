//! The tools' processes under real shims: this executable, started again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so"
)]

mod background;
mod fixture;
mod foreground;
mod recovery;
mod scan;

use std::ffi::OsString;

/// Not a test: the entry point of the shims that other tests start. It does nothing otherwise.
#[test]
fn shim_child() {
    let first = agentd_process::shim::ARGUMENT;
    let args = std::env::args_os().skip_while(|arg| arg != first);
    agentd_process::shim::run_if_asked(std::iter::once(OsString::new()).chain(args));
}
