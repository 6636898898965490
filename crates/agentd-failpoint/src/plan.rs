//! What happens at which failpoint: the file `plan.json` in the lab's directory.

use super::door::{TOKEN, TOKEN_FILE};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

pub const FILE: &str = "plan.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Record every failpoint that is passed.
    pub trace: bool,
    /// The injected bugs that are switched on.
    pub injected_bugs: Vec<String>,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique among the rules: files are named after it.
    pub name: String,
    pub role: Role,
    /// The number of the process among those of its role, in the order of their start; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    pub failpoint: String,
    /// Which pass of the failpoint by one process, counted from 1; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    pub action: Action,
    /// Apply the rule each time, in any process, and not only once.
    #[serde(default)]
    pub each: bool,
}

/// The role of a process.
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

/// What happens to the process at the failpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Kill,
    Term,
    Int,
    Stop,
    /// It waits until the lab releases it.
    Hold,
    /// The async task at the failpoint panics; the process continues.
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
    /// The plan of this directory; an empty plan if there is none.
    pub fn read(dir: &Path) -> io::Result<Self> {
        match std::fs::read(dir.join(FILE)) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Makes the directory a lab, with this plan for processes that start from now on.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        std::fs::write(dir.join(TOKEN_FILE), TOKEN)?;
        let unready = dir.join(".plan.json");
        std::fs::write(&unready, serde_json::to_vec(self)?)?;
        std::fs::rename(unready, dir.join(FILE))
    }
}

impl Rule {
    /// A rule that holds the first process of that role that reaches the failpoint.
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
}
