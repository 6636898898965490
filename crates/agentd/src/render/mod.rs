//! The API's objects as text for people. Pure: from values to text.

pub mod agent;
pub mod approval;
pub mod call;
pub mod context;
pub mod conversation;
pub mod ended;
pub mod event;
pub mod files;
pub mod held;
pub mod hit;
pub mod limit;
pub mod patched;
pub mod plan;
pub mod receipt;
pub mod replaced;
pub mod schedule;
pub mod subagents;
pub mod table;
pub mod time;
pub mod tree;
pub mod usage;
pub mod usage_report;

use agentd_client::api::AgentRef;

/// How much is shown of thinking, of the output of tools and of changes to files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    #[default]
    Brief,
    Full,
}

/// `1 agent`, `2 agents`.
pub fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// A number of bytes, rounded up.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1_048_576)),
    }
}

/// The name of an agent, or its id if it has no name here.
pub fn named(agent: &AgentRef) -> String {
    let id = || agent.id.to_string();
    agent.name.clone().unwrap_or_else(id)
}

/// Characters of a text that a column shows.
const COLUMN: usize = 40;

/// A text in one short line, for a column of a table.
pub fn line_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(COLUMN) {
        Some(_) => line.chars().take(COLUMN - 1).chain(['…']).collect(),
        None => line,
    }
}

/// A directory with `~` in place of the user's own.
pub fn directory(path: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches('/'));
    let home = home.filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// A value that is a single word in JSON, without quotes.
pub fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_one_short_line() {
        assert_eq!(line_of(" Fix\n the  tests "), "Fix the tests");
        let long = line_of(&"ü".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (COLUMN, true));
    }

    #[test]
    fn only_the_users_own_directory_is_shortened() {
        let home = Some("/home/me/");
        assert_eq!(directory("/home/me", home), "~");
        assert_eq!(directory("/home/me/src/x", home), "~/src/x");
        assert_eq!(directory("/home/melanie", home), "/home/melanie");
        assert_eq!(directory("/srv", None), "/srv");
        assert_eq!(directory("/srv", Some("/")), "/srv");
    }
}
