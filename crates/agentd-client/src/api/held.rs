//! An imported agent that is held: what it contains, and its release.

use super::{AgentRef, Approval, time};
use agentd_core::event::{HeldPart, HoldReason};
use agentd_core::id::{PromptId, Seq, TurnId};
use agentd_core::spec::{ApprovalMode, Command, McpServer, Network, Pass, Rule, Runtime, Sandbox};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /v1/agents/{name}/held`: what a held agent contains, as far as it can act for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub agent: AgentRef,
    pub reason: HoldReason,
    /// When it was imported.
    #[serde(with = "time")]
    pub since: Timestamp,
    /// The agent that it is a copy or a fork of.
    pub from: Option<AgentRef>,
    /// The last event of its journal. A release that names it is refused if there is a newer one.
    pub head: Seq,
    #[serde(with = "time")]
    pub created_at: Timestamp,
    pub conversations: u64,
    pub turns: u64,
    /// How many prompts are queued.
    pub queued: u64,
    /// The first of those prompts.
    pub queue: Vec<HeldPrompt>,
    /// The turn in progress; it ends as interrupted.
    pub turn: Option<TurnId>,
    /// The calls that wait for approval; they are withdrawn.
    pub approvals: Vec<Approval>,
    /// The background tasks that its journal says are running.
    pub tasks: u64,
    pub settings: HeldSettings,
    /// The parts that a release drops, unless it keeps them.
    pub drops: Vec<HeldPart>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldPrompt {
    pub prompt: PromptId,
    #[serde(with = "time")]
    pub at: Timestamp,
    /// The beginning of the prompt; none if it was purged.
    pub text: Option<String>,
}

/// The settings that decide what an agent can do here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldSettings {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub cwd: Option<String>,
    pub runtime: Runtime,
    pub command: Option<Command>,
    pub tools: Option<Vec<String>>,
    /// The rules that allow calls.
    pub allows: Vec<Rule>,
    pub approval: Option<ApprovalMode>,
    pub sandbox: Option<Sandbox>,
    pub network: Option<Network>,
    pub writable: Vec<String>,
    pub readable: Vec<String>,
    /// The services of the user that its tools may use.
    #[serde(default)]
    pub pass: Vec<Pass>,
    /// The names of the variables; their values are in the settings.
    pub env: Vec<String>,
    /// The caller's variables that its tools get.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Each hook as its event and what it runs.
    pub hooks: Vec<String>,
    pub mcp: BTreeMap<String, McpServer>,
}

/// The user's decision about a held agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<HeldPart>,
    /// The [`Held::head`] that the user saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Seq>,
}
