//! Tasks under real shims: this executable, started again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so"
)]

mod adoption;
mod attached;
mod ends;
mod fixture;
mod memory;
mod output;
mod phases;
mod race;
mod secrets;
mod trees;

use std::ffi::OsString;

/// Not a test: the entry point of the shims that other tests start. It does nothing otherwise.
#[test]
fn shim_child() {
    agentd_process::shim::run_if_asked(args_from(agentd_process::shim::ARGUMENT));
}

/// Not a test: a process that starts a task and then waits to be killed. It does nothing otherwise.
#[test]
fn starter_child() {
    adoption::start_if_asked(args_from(adoption::ARGUMENT));
}

/// The arguments from `first` on, as if the program had been started with these only.
fn args_from(first: &str) -> Vec<OsString> {
    let args = std::env::args_os().skip_while(|arg| arg != first);
    std::iter::once(OsString::new()).chain(args).collect()
}
