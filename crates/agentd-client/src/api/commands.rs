//! Commands that the user runs in the sandbox of an agent's tools.

use super::{AgentRef, Env};
use agentd_core::event::CommandEnd;
use agentd_core::id::{CommandId, ConversationId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/agents/{name}/commands`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The command line, for bash.
    pub command: String,
    /// The command is ended after this time; 120 s if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

/// A command that has ended. What `agentd exec --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCommand {
    pub agent: AgentRef,
    pub conversation: ConversationId,
    pub id: CommandId,
    /// The command line, without secrets.
    pub command: String,
    /// What it wrote to stdout and stderr, without secrets. Long output is cut in the middle.
    pub output: String,
    #[serde(flatten)]
    pub end: CommandEnd,
    pub duration_ms: u64,
    /// It had been run with this op before.
    pub repeated: bool,
}
