//! What the daemon orders from the process that reads and writes files in the sandbox of an agent's tools, and what that
//! process reports: one JSON value on its input, and one JSON value in each line of its output.

use crate::event::{FileState, KeptContent, NotKept};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The first argument that makes the program this process.
pub const ARGUMENT: &str = "files-worker";

/// Larger files are never read: a command can make a file of any size in a moment.
pub const HASHED_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Work {
    /// Report what is at these paths.
    Read {
        paths: Vec<String>,
        /// With the contents of files up to this size.
        largest: u64,
        /// Larger files are not read at all: of them only the size is reported.
        #[serde(default = "hashed_bytes")]
        hashed: u64,
    },
    Write {
        /// Part of the names of temporary files.
        name: String,
        files: Vec<WriteFile>,
    },
}

const fn hashed_bytes() -> u64 {
    HASHED_BYTES
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFile {
    pub path: String,
    /// In any other state the path is not written, unless it already is what it is to be.
    pub expected: FileState,
    pub target: FileState,
    /// The file that has the content of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<PathBuf>,
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Report {
    /// The next part of the content of the file that is found next.
    Part {
        content: KeptContent,
    },
    Found {
        path: String,
        found: Found,
    },
    Written {
        path: String,
        outcome: Written,
    },
    /// All was reported.
    End,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Found {
    /// A file, a symlink, or nothing.
    Known {
        state: FileState,
        size: u64,
        /// Why the content of the file was not reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_kept: Option<NotKept>,
    },
    /// A directory, or something else that has no content.
    Other { what: String },
    /// A directory above it is something else now: `/srv/app is a symlink`.
    Blocked { what: String },
    /// It cannot be reached or read.
    Failed {
        why: String,
        /// The size of a file that was not read because it is too large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Written {
    Done,
    /// It was changed since it was read.
    Changed,
    Failed {
        why: String,
    },
}
