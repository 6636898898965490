//! What is to happen at which failpoint: the file `plan.json` in the lab's directory.

use super::record::Passed;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

pub const FILE: &str = "plan.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Every failpoint that is passed is written down.
    pub trace: bool,
    /// Mistakes to make on purpose.
    pub injected_bugs: Vec<String>,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its own among the rules: files are named after it.
    pub name: String,
    pub role: Role,
    /// Which one of that role, in the order in which they came; none for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    pub failpoint: String,
    /// At which time that a process passes the failpoint; none for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    pub action: Action,
    /// Each time, and not only once in all, whichever process it is by then.
    #[serde(default)]
    pub each: bool,
}

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Client,
    Daemon,
    Runtime,
    /// An agent without a daemon.
    Agent,
    Shim,
    Tool,
}

/// What a process does to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Kill,
    Term,
    Int,
    Stop,
    /// It waits until it is told to go on.
    Hold,
    /// The task that is at the failpoint panics; the process goes on.
    Panic,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Daemon => "daemon",
            Self::Runtime => "runtime",
            Self::Agent => "agent",
            Self::Shim => "shim",
            Self::Tool => "tool",
        }
    }
}

impl Action {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Stop => "STOP",
            Self::Hold => "HOLD",
            Self::Panic => "PANIC",
        }
    }
}

impl Plan {
    /// The plan of this directory; one that says nothing, where there is none.
    pub fn read(dir: &Path) -> io::Result<Self> {
        match std::fs::read(dir.join(FILE)) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Makes the directory a lab, with this plan for those that come from now on.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        std::fs::write(dir.join(super::TOKEN_FILE), super::TOKEN)?;
        let unready = dir.join(".plan.json");
        std::fs::write(&unready, serde_json::to_vec(self)?)?;
        std::fs::rename(unready, dir.join(FILE))
    }
}

impl Rule {
    /// Holds whoever of that role comes to the failpoint, once in all.
    pub fn hold(name: impl Into<String>, role: Role, failpoint: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role,
            process: None,
            failpoint: failpoint.into(),
            nth: None,
            action: Action::Hold,
            each: false,
        }
    }

    pub(super) fn is_for(&self, passed: &Passed) -> bool {
        self.role == passed.role
            && self.failpoint == passed.failpoint
            && self.process.is_none_or(|process| process == passed.process)
            && self.nth.is_none_or(|nth| nth == passed.nth)
    }
}
