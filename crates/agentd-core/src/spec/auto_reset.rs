//! When an agent gets a fresh conversation without a request by the user.

use serde::{Deserialize, Serialize};

/// Each of these is off unless it is set. Queued prompts move to the new conversation, and the old one is kept as
/// after any reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoReset {
    /// Whether the agent has the tool `reset_conversation`. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_tool: bool,
    /// After this many milliseconds without a turn, whether or not a prompt arrives then. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// After a turn whose last answer, with everything that it answered, has this many tokens. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_tokens: Option<u64>,
}

impl AutoReset {
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }
}
