//! Approval requests and their answers.

use super::{AgentRef, time};
use agentd_core::id::ApprovalId;
use agentd_core::mcp::Question;
use agentd_core::spec::{Network, Sandbox};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A call that waits for the user's approval, with everything needed to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub call: String,
    #[serde(with = "time")]
    pub asked_at: Timestamp,
    /// The subagent whose call it is; none if it is the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// Why the user is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What would run; none if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<Call>,
    /// The call runs, and its MCP server asks the user this. `approve` accepts without input, `answer` with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// A tool call with everything that decides what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub tool: String,
    pub input: serde_json::Value,
    /// The working directory.
    pub cwd: Option<String>,
    pub sandbox: Sandbox,
    pub network: Network,
    /// A digest of the fields above. An answer that names it counts for this call only.
    pub hash: String,
}

/// `POST /v1/agents/{name}/approvals/{id}/approve`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The `hash` of the call that the user saw. The answer is refused if the call differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Also allow the same call from now on, by a rule in the agent's settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

/// `POST /v1/agents/{name}/approvals/{id}/deny`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deny {
    /// As in [`Approve`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The reason, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /v1/agents/{name}/approvals/{id}/answer`: the answer to a question of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The fields of the form, by name.
    #[serde(default)]
    pub content: serde_json::Map<String, serde_json::Value>,
}
