//! A compaction on request.

use super::Env;
use agentd_core::id::{ConversationId, OpId};
use agentd_core::state::CompactionOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/agents/{name}/compact`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// Instructions for the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// A compaction that is requested twice with the same op is made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    pub op: OpId,
    pub conversation: ConversationId,
    pub outcome: CompactionOutcome,
    /// About how many tokens of the conversation the model sees now.
    pub tokens: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
