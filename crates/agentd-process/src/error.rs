//! The errors of this crate.

use crate::identity::Identity;
use std::io;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up the sandbox: {source}{missing}")]
    CannotConfine {
        #[source]
        source: Box<agentd_sandbox::Error>,
        /// What the kernel lacks, and what to change; empty if it lacks nothing.
        missing: String,
    },
    #[error("cannot start {}: {source}; check that it exists and is executable", .program.display())]
    CannotStart {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no process has the pid {pid}")]
    NoSuchProcess { pid: u32 },
    #[error("cannot read /proc/{pid}: {source}; is /proc mounted?")]
    CannotLook {
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("cannot parse /proc/{pid}/stat: `{line}`")]
    BadStat { pid: u32, line: String },
    #[error("cannot signal process {pid}: {source}")]
    CannotSignal {
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("cannot wait for process {pid}: {source}")]
    CannotWait {
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("cannot use {}: {source}", .path.display())]
    CannotUse {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot parse {}: {source}", .path.display())]
    BadRecord {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("the order for a task is invalid: {why}")]
    BadOrder { why: String },
    #[error("cannot send the order to the shim {shim}, so nothing was started: {source}")]
    CannotHand {
        shim: Identity,
        #[source]
        source: io::Error,
    },
    #[error("{what}: {source}")]
    CannotSetUp {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot end the processes {}, although they were killed repeatedly",
        .left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    CannotEnd { left: Vec<Identity> },
}
