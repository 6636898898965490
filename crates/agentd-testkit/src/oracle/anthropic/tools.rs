//! Anthropic: tool definitions, the choice among them, and their presence when tools were used.

use std::collections::HashSet;

use serde_json::Value;

use super::super::schema;
use super::super::shape::{given, has_text, is_word, kind, list_at, text_at};
use super::super::violation::Report;
use super::server_tools;

pub(super) fn check(report: &mut Report, body: &Value) {
    let tools = list_at(body, "tools");
    if let Some(value) = body.get("tools") {
        report.require(value.is_array(), "bad_tools", "tools", kind(Some(value)));
    }
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        definition(report, tool, &path);
        if let Some(name) = text_at(tool, "name") {
            report.require(
                names.insert(name),
                "duplicate_tool",
                path,
                format!("{name:?} is defined twice"),
            );
        }
    }
    if tools.is_empty() {
        used_without_tools(report, body);
    }
    if let Some(choice) = body.get("tool_choice") {
        report.require(
            !tools.is_empty(),
            "tool_choice_without_tools",
            "tool_choice",
            "there is nothing to choose from",
        );
        tool_choice(report, choice, &names);
    }
}

fn definition(report: &mut Report, tool: &Value, path: &str) {
    if !tool.is_object() {
        report.add("bad_tools", path, kind(Some(tool)));
        return;
    }
    match given(tool, "type").map(Value::as_str) {
        None | Some(Some("custom")) => {}
        // A set of remote tools goes by the name of its server.
        Some(Some("mcp_toolset")) => return,
        Some(Some(kind)) => {
            server_tools::definition(report, tool, kind, path);
            // Anthropic's own tools bring their schema with them.
            let named = has_text(tool, "name");
            report.require(named, "bad_tool_name", path, "a tool needs a name");
            return;
        }
        Some(None) => {
            report.add("bad_tools", path, "type must be a string");
            return;
        }
    }
    report.require(
        text_at(tool, "name").is_some_and(is_word),
        "bad_tool_name",
        format!("{path}.name"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    report.require(
        given(tool, "description").is_none_or(Value::is_string),
        "bad_tools",
        format!("{path}.description"),
        "must be a string",
    );
    let at = format!("{path}.input_schema");
    match tool.get("input_schema") {
        Some(found) if found.is_object() => schema::root(report, found, &at),
        other => report.add("bad_input_schema", at, kind(other)),
    }
}

fn used_without_tools(report: &mut Report, body: &Value) {
    for (index, message) in list_at(body, "messages").iter().enumerate() {
        for (place, block) in list_at(message, "content").iter().enumerate() {
            report.require(
                !matches!(text_at(block, "type"), Some("tool_use" | "tool_result")),
                "tools_missing",
                format!("messages[{index}].content[{place}]"),
                "tool blocks need the tools to be defined",
            );
        }
    }
}

fn tool_choice(report: &mut Report, choice: &Value, names: &HashSet<&str>) {
    let fine = match text_at(choice, "type") {
        Some("auto" | "any" | "none") => choice.get("name").is_none(),
        Some("tool") => text_at(choice, "name").is_some_and(|name| names.contains(name)),
        _ => false,
    };
    report.require(
        fine,
        "bad_tool_choice",
        "tool_choice",
        format!("{choice} is not auto, any, none or a defined tool"),
    );
}
