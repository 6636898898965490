//! What is to be run. It goes to the shim on its input: it may hold secrets.

use crate::error::{Error, Result};
use agentd_sandbox::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run as a task, and how far it may go.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// An absolute path; nothing is looked up.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// An absolute path.
    pub cwd: PathBuf,
    /// After that it is ended.
    pub time_limit_ms: Option<u64>,
    /// How long it may take to end once it was asked to, before it is killed.
    pub grace_ms: u64,
    /// How much of its output is kept. What comes after that is counted and dropped.
    pub output_limit_bytes: u64,
    /// A foreground task is over when its program is, and whatever that left behind is ended. A
    /// background task is over when all that it started is.
    pub foreground: bool,
    /// What it writes to its standard error is kept by itself, in the file `errors`.
    #[serde(default)]
    pub errors_apart: bool,
    /// None is an empty input.
    pub stdin: Option<String>,
    /// Secrets: wherever one is in the output, a mark is written instead. One of less than 8 bytes is
    /// not looked for: it would hit too much else.
    pub redact: Vec<String>,
    /// The lab's directory, where whoever orders it is in the lab: see [`failpoint`](crate::failpoint).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<PathBuf>,
    pub limits: Limits,
    /// None runs it with everything that its user may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<Box<Confined>>,
}

/// What keeps a program to what it may see, write and reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    pub policy: Policy,
    /// It writes nothing: so it may run on a kernel that has no namespaces, too.
    pub is_read_only: bool,
    /// What [`Network::Gate`](agentd_sandbox::Network::Gate) leads to, for the process that serves it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// What the operating system should keep the task within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open files, for each of its processes.
    pub open_files: Option<u64>,
    /// For all of it together, where its cgroup can have that limit; otherwise for the data of each
    /// of its processes.
    pub memory_bytes: Option<u64>,
    /// At the same time. Holds only where its cgroup can have that limit: what else there is counts
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
