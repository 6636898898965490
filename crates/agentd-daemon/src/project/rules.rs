//! The permission rules that a project adds to those of the agents that work in it, if the user has trusted them.

use crate::layout::Layout;
use agentd_core::catalog::{self, project_rules};
use agentd_core::hook::digest;
use agentd_core::spec::Rule;
use std::io;
use std::path::Path;

pub const BELOW: &str = ".agentd/config.toml";

/// The rules of the project in this directory. Empty if there is no file, or if it is not trusted or cannot be used.
pub fn of(layout: &Layout, cwd: &Path) -> Vec<Rule> {
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return Vec::new();
    };
    let path = cwd.join(BELOW);
    let bytes = match super::read(&cwd, Path::new(BELOW)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "project rules ignored: not readable");
            return Vec::new();
        }
    };
    if !super::trusted::is_trusted(layout, &path, &digest(&[&bytes])) {
        tracing::info!(path = %path.display(), "project rules ignored: not trusted");
        return Vec::new();
    }
    parse(&bytes).unwrap_or_else(|error| {
        // Unexpected: only a file that can be parsed can be trusted.
        tracing::error!(path = %path.display(), %error, "project rules ignored: not valid");
        Vec::new()
    })
}

/// The rules in a project's configuration file, or what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Vec<Rule>, catalog::Error> {
    project_rules(&String::from_utf8_lossy(bytes), BELOW)
}
