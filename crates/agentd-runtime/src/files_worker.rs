//! Reads and writes files for a restore, in the sandbox of the agent's tools.
//!
//! It is this program, started by the daemon as a task. It gets its work on stdin and reports on stdout: see
//! [`work`](agentd_core::files::work). A symlink is never followed, and a path is replaced atomically: at any moment a
//! reader sees either the old file or the new one. The work can be repeated after a crash.

mod read;
mod state;
mod write;

use agentd_core::files::work::{ARGUMENT, Report, Work};
use agentd_failpoint::{self as failpoint, plan::Role};
use agentd_process::{RUNTIME_BYTES, limit_own_memory};
use read::Bounds;
use std::ffi::OsString;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;

/// If this process was started for this: does the work and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_none_or(|first| first != ARGUMENT) {
        return;
    }
    if let (Some(lab), Some(inside)) = (args.next(), args.next()) {
        // The lab's directory is not visible in a sandbox.
        let _unseen = failpoint::enter(Path::new(&lab), Path::new(&inside), Role::Tool);
    }
    let work = || limit_own_memory(RUNTIME_BYTES).and_then(|()| work());
    let code = match work() {
        Ok(()) => 0,
        Err(_) => 1,
    };
    std::process::exit(code);
}

fn work() -> io::Result<()> {
    let mut order = Vec::new();
    io::stdin().lock().read_to_end(&mut order)?;
    let work: Work = serde_json::from_slice(&order)?;
    let mut reports = Reports(BufWriter::new(io::stdout().lock()));
    match work {
        Work::Read {
            paths,
            largest,
            hashed,
        } => {
            for path in &paths {
                read::report(path, &Bounds { largest, hashed }, &mut reports)?;
            }
        }
        Work::Write { name, files } => {
            let mut rest = files.as_slice();
            while !rest.is_empty() {
                let batch = write::batch(rest);
                let outcomes = write::write(batch, &name);
                for (file, outcome) in batch.iter().zip(outcomes) {
                    let path = file.path.clone();
                    reports.say(&Report::Written { path, outcome })?;
                }
                rest = rest.get(batch.len()..).unwrap_or_default();
            }
        }
    }
    reports.say(&Report::End)?;
    reports.0.flush()
}

/// The lines of output.
struct Reports<W: Write>(W);

impl<W: Write> Reports<W> {
    fn say(&mut self, report: &Report) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, report)?;
        self.0.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests;
