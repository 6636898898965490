//! The tools of the native runtime, by name: the values that `tools:` and `permissions:` accept.

use super::path::{Path, shown};
use super::problem::Problem;
use super::{AgentSpec, MCP_PREFIX, Runtime};

/// All tools of the native runtime.
pub const TOOLS: [&str; 13] = [
    "shell",
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "list_files",
    "search_files",
    "task_output",
    "task_stop",
    "fetch_url",
    PLAN,
    RESET,
    "agent",
];

/// An agent has this tool only with `auto_reset.by_tool`.
const RESET: &str = "reset_conversation";

/// It changes only what the user is shown, so rules do not apply to it.
const PLAN: &str = "update_plan";

/// In a rule: all tools.
const ANY: &str = "*";

/// Checks every tool name in a spec. Other runtimes have their own tools.
pub(super) fn check(spec: &AgentSpec) -> Result<(), Problem> {
    if spec.runtime != Runtime::Native {
        return Ok(());
    }
    for (index, tool) in spec.tools.iter().flatten().enumerate() {
        let path = || Path::key("tools").at(index);
        known(tool, path)?;
        if tool == RESET && !spec.auto_reset.by_tool {
            let reason = "this tool needs `auto_reset: {by_tool: true}`; add that, or remove it";
            return Err(Problem::new(path(), reason));
        }
    }
    for (index, rule) in spec.permissions.iter().enumerate() {
        let path = || Path::key("permissions").at(index).then("tool");
        if rule.tool != ANY && !rule.tool.starts_with(MCP_PREFIX) {
            known(&rule.tool, path)?;
        }
        if rule.tool == PLAN {
            let reason =
                "this tool needs no permission; remove the rule, or leave the tool out of `tools`";
            return Err(Problem::new(path(), reason));
        }
    }
    for (kind, subagent) in &spec.agents {
        for (index, tool) in subagent.tools.iter().flatten().enumerate() {
            known(tool, || {
                Path::key("agents").then(kind).then("tools").at(index)
            })?;
        }
    }
    Ok(())
}

fn known(name: &str, path: impl FnOnce() -> Path) -> Result<(), Problem> {
    if TOOLS.contains(&name) {
        return Ok(());
    }
    let distances = TOOLS.map(|tool| (strsim::osa_distance(name, tool), tool));
    let nearest = distances.into_iter().min();
    let hint = match nearest.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3) {
        Some((_, tool)) => format!("did you mean `{tool}`?"),
        None => format!("the tools are: {}", TOOLS.join(", ")),
    };
    let reason = format!("unknown tool `{}`; {hint}", shown(name));
    Err(Problem::new(path(), &reason))
}
