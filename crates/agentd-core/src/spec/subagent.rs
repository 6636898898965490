//! The kinds of subagents that an agent may start.

use super::{Budget, Reasoning};
use serde::{Deserialize, Serialize};

/// A kind of subagent. Settings that are absent are taken from the agent that starts it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Subagent {
    /// What it is for. The model that chooses a subagent sees it. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The provider of its model. Default: as the parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its model. Default: as the parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The names of its tools. Default: as the parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How much it thinks. Default: as the parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// What one of them, with all its descendants, may use; never more than is left of the parent's `limits.subtree`.
    /// Default: half of what is left; no limit if the parent has none.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Its system prompt. Default: as the parent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}
