//! The API's objects as text for people. Pure: from values to text.

pub mod agent;
pub mod approval;
pub mod conversation;
pub mod event;
pub mod held;
pub mod receipt;
pub mod subagents;
pub mod table;
pub mod time;
pub mod tree;
pub mod usage;

use agentd_client::api::AgentRef;

/// `1 agent`, `2 agents`.
pub fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// The name of an agent, or its id if it has no name here.
pub fn named(agent: &AgentRef) -> String {
    let id = || agent.id.to_string();
    agent.name.clone().unwrap_or_else(id)
}

/// A value that is a single word in JSON, without quotes.
pub fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
