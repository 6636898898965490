//! The condition of a handler (`if`): whether it runs for a call that its matcher selects.

use super::hook_input::{HookInput, ToldCall};
use crate::foreign_rule::{ForeignRule, RuleDirs};
use crate::lexical_path::normalised;
use crate::permission::Subject;
use crate::shell_words;
use crate::spec::{MCP_PREFIX, TOOLS};
use serde_json::{Map, Value};
use std::path::Path;

/// Whether the call is one that the rule matches. The handler may be a guard: where that cannot be told, it runs.
pub(super) fn holds(
    rule: &ForeignRule,
    hook_input: &HookInput,
    call: Option<&ToldCall>,
    cwd: &Path,
) -> bool {
    let Some(tool) = hook_input.subject() else {
        return true;
    };
    if !TOOLS.contains(&tool) && !tool.starts_with(MCP_PREFIX) {
        // A tool of another program.
        return true;
    }
    let input = hook_input
        .fields
        .get("tool_input")
        .and_then(Value::as_object);
    let input = call.and_then(|call| call.file.as_ref()).or(input);
    let subjects = subjects(tool, input, hook_input, cwd);
    let dir = cwd.to_string_lossy();
    let dirs = RuleDirs {
        dir: &dir,
        home: None,
    };
    rule.matches(tool, &subjects, dirs).unwrap_or(true)
}

/// What the call is about.
fn subjects(
    tool: &str,
    input: Option<&Map<String, Value>>,
    hook_input: &HookInput,
    cwd: &Path,
) -> Vec<Subject> {
    let text = |key: &str| input?.get(key)?.as_str();
    let file = |path: &str| {
        let path = normalised(&cwd.join(path));
        Subject::name(path.display().to_string())
    };
    if tool == shell_words::TOOL {
        return vec![Subject::Command(
            text("command").unwrap_or_default().to_owned(),
        )];
    }
    if let Some(path) = text("file_path").or(text("path")) {
        return vec![file(path)];
    }
    let paths = hook_input
        .fields
        .get("tool_paths")
        .and_then(Value::as_array);
    if let Some(paths) = paths {
        return paths.iter().filter_map(Value::as_str).map(file).collect();
    }
    match (tool, text("url").or(text("kind"))) {
        (_, Some(name)) => vec![Subject::name(name)],
        // Without a path, these are about the working directory.
        ("list_files" | "search_files", None) => vec![file("")],
        _ => vec![Subject::Names(vec![String::new()])],
    }
}
