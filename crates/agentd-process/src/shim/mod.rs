//! The shim: the process that runs one task and outlives the runtime and the daemon.
//!
//! It is this program, started again with a hidden argument. It wins the claim on its task or does nothing. It starts
//! the program, stores its output, reaps the task's processes, ends them when that is due, and records how the task
//! ended. It knows only the order that it was given.

mod gate;
mod leader;
mod life;
mod owner;
mod pump;
mod redact;
mod signals;
mod tree;
mod watch;

pub use crate::shim_protocol::ARGUMENT;
pub use gate::ARGUMENT as GATE_ARGUMENT;
pub use redact::Redactor;

use std::ffi::OsString;
use std::path::PathBuf;

/// If this process was started as a shim: runs it and never returns. Call it with the process's own arguments, program
/// name first, before anything else.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        let code = match args.next() {
            Some(dir) => life::live(&PathBuf::from(dir)),
            None => life::Outcome::Nothing,
        };
        std::process::exit(code as i32);
    }
}
