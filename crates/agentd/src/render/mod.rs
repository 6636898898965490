//! What the API's objects look like to people. Pure: from values to text.

pub mod agent;
pub mod conversation;
pub mod event;
pub mod kin;
pub mod receipt;
pub mod table;
pub mod time;
pub mod tree;
pub mod usage;

/// `1 agent`, `2 agents`.
pub fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// As JSON spells a value that is one word.
pub fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
