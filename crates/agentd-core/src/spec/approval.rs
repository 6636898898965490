//! When the user is asked about a tool call.

use serde::{Deserialize, Serialize};

/// Counts for calls that no rule of `permissions` is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// What stays inside the sandbox runs; a call that wants to leave it asks.
    #[default]
    OnRequest,
    /// Every call that changes something or uses the network asks.
    Always,
    /// Nobody is asked: what would have to be asked is refused, and the model is told.
    Never,
}
