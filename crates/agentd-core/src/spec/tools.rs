//! The tools of the native runtime, by name: the values that `tools:` and `permissions:` accept.

use super::path::{Path, shown};
use super::problem::Problem;
use super::{AgentSpec, Decision, MCP_PREFIX, Pass, Rule, Runtime};
use crate::hosts::Host;

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

/// The tools whose calls may ask for more than the sandbox gives.
const ESCALATING: [&str; 4] = ["shell", "write_file", "edit_file", "apply_patch"];

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
        needs(rule, index)?;
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

/// Checks what a rule lets calls have beyond their sandbox.
fn needs(rule: &Rule, index: usize) -> Result<(), Problem> {
    let path = || Path::key("permissions").at(index).then("needs");
    if rule.needs.is_empty() {
        return Ok(());
    }
    if rule.decision != Decision::Allow {
        return Err(Problem::new(path(), "only an allow rule has `needs`"));
    }
    if rule.tool != ANY && !ESCALATING.contains(&rule.tool.as_str()) {
        let reason = format!(
            "calls of this tool stay in the sandbox; the tools with `needs` are {}",
            ESCALATING.join(", ")
        );
        return Err(Problem::new(path(), &reason));
    }
    for (at, need) in rule.needs.iter().enumerate() {
        if !is_need(need) {
            let reason = "write `write:PATH`, `read:PATH` (absolute, or `~/…`), `service:NAME`, `host:NAME`, \
                          `git-config` or `everything`";
            return Err(Problem::new(path().at(at), reason));
        }
    }
    Ok(())
}

fn is_need(text: &str) -> bool {
    let is_whole = |path: &str| path.starts_with('/') || path == "~" || path.starts_with("~/");
    match text.split_once(':') {
        Some(("write" | "read", path)) => is_whole(path),
        Some(("service", name)) => Pass::ALL.iter().any(|pass| pass.name() == name),
        Some(("host", host)) => host.parse::<Host>().is_ok(),
        Some(_) => false,
        None => text == "git-config" || text == "everything",
    }
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
