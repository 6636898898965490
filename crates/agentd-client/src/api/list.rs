//! The list of agents.

use super::{AgentRef, Approval, Process, Usage, time};
use agentd_core::event::Mode;
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/agents`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Archived agents instead of the others.
    #[serde(default)]
    pub archived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// With each agent's title and last words, which takes longer.
    #[serde(default)]
    pub words: bool,
    /// Sort by name instead of last use.
    #[serde(default)]
    pub by_name: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// From [`Agents::next`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<AgentLine>,
    pub total: u64,
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentLine {
    pub id: AgentId,
    pub name: String,
    pub mode: Mode,
    pub phase: Phase,
    pub process: Process,
    pub generation: u64,
    pub conversations: u64,
    pub usage: Usage,
    #[serde(with = "time")]
    pub created_at: Timestamp,
    #[serde(with = "time")]
    pub updated_at: Timestamp,
    pub archived: bool,
    /// The agent that started it, if it is a subagent.
    #[serde(default)]
    pub parent: Option<AgentRef>,
    /// The title of its conversation. This and the following four only if [`List::words`] is set.
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub provider: Option<String>,
    #[serde(default)]
    pub cwd: Option<String>,
    /// The beginning of the last answer.
    #[serde(default)]
    pub summary: Option<String>,
    /// When one of its schedules is due next. Only if [`List::words`] is set.
    #[serde(
        with = "time::option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub next_due: Option<Timestamp>,
    /// Why no tool of it starts. Only if [`List::words`] is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_tools: Option<String>,
    /// The calls that wait for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
}
