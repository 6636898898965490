//! When the user is asked to approve a tool call.

use serde::{Deserialize, Serialize};

/// Applies to calls that no rule of `permissions` matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// A call inside the sandbox runs; a call that asks to leave it needs approval.
    #[default]
    OnRequest,
    /// Every call that changes something or uses the network needs approval.
    Always,
    /// The user is never asked: a call that needs approval is refused, and the model is told.
    Never,
}

impl ApprovalMode {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnRequest => "on-request",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
