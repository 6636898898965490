//! A worker: this program, started by the daemon as a task that asks one program or server and ends. It gets its work as
//! JSON on stdin and reports as JSON on stdout.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};

/// If this process was started as the worker with this first argument: reports on its work and never returns.
pub fn run_if_asked<W, R, F>(
    args: impl IntoIterator<Item = OsString>,
    argument: &str,
    report: impl FnOnce(W) -> F,
) where
    W: DeserializeOwned,
    R: Serialize,
    F: Future<Output = io::Result<R>>,
{
    let first = args.into_iter().nth(1);
    if first.is_none_or(|first| first != argument) {
        return;
    }
    let code = match work(report) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    std::process::exit(code);
}

fn work<W, R, F>(report: impl FnOnce(W) -> F) -> io::Result<()>
where
    W: DeserializeOwned,
    R: Serialize,
    F: Future<Output = io::Result<R>>,
{
    // Its work contains keys: other processes of the same user must not read its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut order = Vec::new();
    io::stdin().lock().read_to_end(&mut order)?;
    let work: W = serde_json::from_slice(&order)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(report(work))?;
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &report)?;
    out.flush()
}
