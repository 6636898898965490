//! What agents have spent, in detail.

use super::{AgentRef, Usage, time};
use agentd_core::id::ConversationId;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /v1/usage`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageQuery {
    /// By default all agents, archived ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default)]
    pub by: UsageBy,
    /// Only requests that ended at this time or later.
    #[serde(
        default,
        with = "time::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub since: Option<Timestamp>,
}

/// What the rows of a report are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    #[default]
    Agent,
    Model,
    /// Days in UTC, like the daily budgets.
    Day,
    Conversation,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    pub by: UsageBy,
    pub rows: Vec<UsageRow>,
    /// The sum of the rows.
    pub total: UsageRow,
}

/// A sum of requests. The fields that name it depend on [`UsageReport::by`]; the others are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageRow {
    /// By agent and by conversation.
    pub agent: Option<AgentRef>,
    /// By model; none also if the model is unknown, for example because the conversation was purged.
    pub model: Option<String>,
    /// By day: `2026-01-31`.
    pub day: Option<String>,
    pub conversation: Option<ConversationId>,
    /// The conversation's number.
    pub ordinal: Option<u32>,
    pub requests: u64,
    /// Requests whose cost is unknown.
    pub unpriced: u64,
    pub usage: Usage,
    /// The cost of the other requests.
    pub priced_usd: f64,
}
