//! The order: what to run. The shim gets it on stdin, because it may contain secrets.

use crate::error::{Error, Result};
use agentd_sandbox::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run as a task, and its limits.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// An absolute path; there is no search in `PATH`.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// An absolute path.
    pub cwd: PathBuf,
    /// The task is ended after this time.
    pub time_limit_ms: Option<u64>,
    /// How long it may take to end after SIGTERM, before it is killed.
    pub grace_ms: u64,
    /// How much of its output is kept. Further output is counted and dropped.
    pub output_limit_bytes: u64,
    /// A foreground task ends with its program: the shim then ends the processes that are left. A background task ends
    /// when all its processes have ended.
    pub foreground: bool,
    /// Keep its stderr separately, in the file `errors`.
    #[serde(default)]
    pub errors_apart: bool,
    /// `None` means empty input.
    pub stdin: Option<String>,
    /// Its stdin and stdout are pipes to the process that starts it: see [`start_attached`](super::start_attached). The
    /// task is ended when that process closes them or dies. Its stderr is kept in `errors`.
    #[serde(default)]
    pub attached: bool,
    /// Secrets that are replaced by a mark in the output. A secret of less than 8 bytes is ignored: it would match too
    /// much other text.
    pub redact: Vec<String>,
    /// The lab's directory, if the process that gives the order is in the lab: see `agentd_failpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<PathBuf>,
    pub limits: Limits,
    /// `None` means no sandbox: the program may do what its user may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<Box<Confined>>,
}

/// The sandbox of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    pub policy: Policy,
    /// The program may not write anything, so it can also run on a kernel without namespaces.
    pub is_read_only: bool,
    /// The hosts that [`Network::Gate`](agentd_sandbox::Network::Gate) allows, for the process that serves it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// The limits that the operating system enforces on the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open files, for each of its processes.
    pub open_files: Option<u64>,
    /// Memory, for all its processes together if its cgroup supports that limit; otherwise for the data segment of each
    /// process.
    pub memory_bytes: Option<u64>,
    /// Processes at the same time. Enforced only if its cgroup supports that limit: the alternative, an rlimit, counts
    /// all processes of a user.
    pub processes: Option<u64>,
}

impl Order {
    pub(super) fn check(&self) -> Result<()> {
        let paths = [("program", &self.program), ("cwd", &self.cwd)];
        for (name, path) in paths {
            if !path.is_absolute() {
                let why = format!("`{name}` is `{}`; give an absolute path", path.display());
                return Err(Error::BadOrder { why });
            }
        }
        Ok(())
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.time_limit_ms.map(Duration::from_millis)
    }
}

/// Arguments, environment, input and secrets are not shown.
impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("foreground", &self.foreground)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
