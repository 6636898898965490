//! What the process that reads and writes text files for an agent's program gets on stdin, and what it reports on stdout:
//! one JSON value per line, a report for each piece of work.

use serde::{Deserialize, Serialize};

/// The first argument of that process.
pub const ARGUMENT: &str = "__acp-files";
/// Its second argument, if it runs in a sandbox.
pub const CONFINED: &str = "confined";
/// The longest text that is read at once, in bytes.
pub const LONGEST_TEXT: usize = 4 * 1024 * 1024;

/// The paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileWork {
    Read {
        path: String,
        /// The first line, counted from 1.
        line: Option<u64>,
        /// How many lines.
        limit: Option<u64>,
    },
    /// Creates or replaces the file, with its parent directories.
    Write { path: String, content: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileReport {
    Text(String),
    Written,
    /// There is no such file.
    Missing(String),
    /// Nothing was written.
    Failed(String),
}
