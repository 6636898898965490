//! The rules that a project adds to those of agents that work in it, once the user has trusted them.

use crate::layout::Layout;
use crate::trust;
use agentd_core::catalog::{self, project_rules};
use agentd_core::hook::digest;
use agentd_core::spec::Rule;
use std::io;
use std::path::Path;

pub const BELOW: &str = ".agentd/config.toml";

/// None where there is no file, or none that is trusted as it is.
pub fn of(layout: &Layout, cwd: &Path) -> Vec<Rule> {
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return Vec::new();
    };
    let path = cwd.join(BELOW);
    let bytes = match super::read(&cwd, Path::new(BELOW)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "rules of a project not used");
            return Vec::new();
        }
    };
    if !trust::is_trusted(layout, &path, &digest(&[&bytes])) {
        tracing::info!(path = %path.display(), "rules of a project not used: not trusted");
        return Vec::new();
    }
    parse(&bytes).unwrap_or_else(|error| {
        // It was looked at before it was trusted.
        tracing::error!(path = %path.display(), %error, "rules of a project not used");
        Vec::new()
    })
}

/// What such a file says, or what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Vec<Rule>, catalog::Error> {
    project_rules(&String::from_utf8_lossy(bytes), BELOW)
}
