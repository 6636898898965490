//! What an agent's tools may see, write and reach.

use super::AgentSpec;
use super::path::Path;
use super::validate::Problem;
use serde::{Deserialize, Serialize};

/// What tools may see and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// They write nothing but their own temporary files.
    ReadOnly,
    /// They write the working folder, and what `writable` names.
    #[default]
    WorkspaceWrite,
    /// They do what their user may do.
    FullAccess,
}

/// What tools may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    #[default]
    On,
    /// Nothing but a loopback of their own.
    Off,
}

pub(super) fn check(spec: &AgentSpec) -> Result<(), Problem> {
    for (key, paths) in [("writable", &spec.writable), ("readable", &spec.readable)] {
        for (index, path) in paths.iter().enumerate() {
            let is_whole = path.starts_with('/') || path == "~" || path.starts_with("~/");
            if !is_whole || path.contains('\0') {
                let reason = "give an absolute path, or one that begins with `~/`";
                return Err(Problem::new(Path::key(key).at(index), reason));
            }
        }
    }
    if spec.sandbox == Some(Sandbox::ReadOnly) && !spec.writable.is_empty() {
        let reason = "a `read-only` sandbox writes nothing; remove it, or use `workspace-write`";
        return Err(Problem::new(Path::key("writable"), reason));
    }
    if spec.sandbox == Some(Sandbox::FullAccess) && spec.network == Some(Network::Off) {
        let reason = "`full-access` is without a sandbox, so the network cannot be off";
        return Err(Problem::new(Path::key("network"), reason));
    }
    Ok(())
}
