//! What [`AgentSpec::validate`](super::AgentSpec::validate) finds wrong.

use super::path::Path;

/// A spec whose fields have the right types but contradict each other or are out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {reason}")]
pub struct Problem {
    pub(super) path: Path,
    pub(super) reason: String,
}

impl Problem {
    pub(super) fn new(path: Path, reason: &str) -> Self {
        Self {
            path,
            reason: reason.to_owned(),
        }
    }

    /// The path of the invalid key, such as `mcp.search`.
    pub fn key(&self) -> String {
        self.path.to_string()
    }

    /// The same path in a file where the settings are in this section.
    pub(crate) fn below(&self, section: &str) -> Path {
        let mut path = Path::key(section);
        path.0.extend(self.path.0.iter().cloned());
        path
    }

    /// What is wrong, and what to do.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
