//! What the process that asks an agent's program to delete a session gets on stdin, and what it reports on stdout.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The first argument of that process.
pub const ARGUMENT: &str = "__acp-delete";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The program's own id of the session.
    pub session: String,
    pub program: String,
    pub args: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// For the files of the program's process while it runs.
    pub state: PathBuf,
    /// The sandbox of the program, in the form of `agentd-process`; none means no sandbox.
    pub confined: Option<Value>,
    /// The limits of its processes, in the form of `agentd-process`.
    pub limits: Value,
    pub secrets: Vec<String>,
    /// How long the program may take to start and to answer.
    pub time_limit_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The program confirmed it.
    Deleted,
    /// The program does not advertise `session/delete`, and was not asked.
    NotOffered,
    Failed(String),
}
