//! What a shim writes down about its task.

use crate::identity::Identity;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file `running`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    pub shim: Identity,
    /// None while it is about to be started.
    pub leader: Option<Identity>,
    pub boot: String,
    pub cgroup: Option<PathBuf>,
}

/// The file `exit`: how a task ended. That it is there is the only proof that it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// What the program returned; none where a signal ended it, or where it was never started.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// It was ended because its time was over.
    pub timed_out: bool,
    /// It was ended because somebody said so.
    pub stopped: bool,
    /// How long `output` is.
    pub output_bytes: u64,
    /// What came after that and was not kept.
    pub dropped_bytes: u64,
    pub duration_ms: u64,
    /// Why the program could not be started at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
