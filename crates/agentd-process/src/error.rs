//! What can go wrong with a process.

use crate::identity::Identity;
use std::io;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the sandbox cannot be set up: {source}{missing}")]
    CannotConfine {
        #[source]
        source: Box<agentd_sandbox::Error>,
        /// What the kernel lacks, and what to change; empty where it lacks nothing.
        missing: String,
    },
    #[error("cannot start {}: {source}; check that it is there and may be run", .program.display())]
    CannotStart {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no process has the pid {pid}")]
    NoSuchProcess { pid: u32 },
    #[error("cannot read what the system says about process {pid}: {source}; is /proc mounted?")]
    CannotLook {
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("what the system says about process {pid} cannot be understood: `{line}`")]
    BadStat { pid: u32, line: String },
    #[error("process {pid} cannot be signalled: {source}")]
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
    #[error("{} is not what it should be: {source}", .path.display())]
    BadRecord {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("the order for a task is no good: {why}")]
    BadOrder { why: String },
    #[error("the order did not reach the shim {shim}, which started nothing: {source}")]
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
        "{} cannot be ended, however often they are killed",
        .left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    CannotEnd { left: Vec<Identity> },
}
