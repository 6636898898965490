//! Gemini: function declarations, the settings for calling them, and their presence when used.

use std::collections::HashSet;

use serde_json::Value;

use super::super::schema;
use super::super::shape::{given, is_word, kind, known_fields, list_at, text_at};
use super::super::violation::Report;

const TOOL_FIELDS: &[&str] = &[
    "codeExecution",
    "computerUse",
    "fileSearch",
    "functionDeclarations",
    "googleMaps",
    "googleSearch",
    "googleSearchRetrieval",
    "mcpServers",
    "urlContext",
];

const FUNCTION_FIELDS: &[&str] = &[
    "behavior",
    "description",
    "name",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
];

pub(super) fn check(report: &mut Report, body: &Value) {
    let mut names = HashSet::new();
    if let Some(tools) = given(body, "tools") {
        report.require(tools.is_array(), "bad_tools", "tools", kind(Some(tools)));
    }
    for (index, tool) in list_at(body, "tools").iter().enumerate() {
        let path = format!("tools[{index}]");
        known_fields(report, tool, &path, TOOL_FIELDS);
        let empty = tool.as_object().is_none_or(serde_json::Map::is_empty);
        report.require(!empty, "bad_tools", &path, "an empty tool");
        let path = format!("{path}.functionDeclarations");
        if let Some(list) = tool.get("functionDeclarations") {
            report.require(
                list.as_array().is_some_and(|list| !list.is_empty()),
                "bad_tools",
                &path,
                "must be an array with something in it",
            );
        }
        for (place, one) in list_at(tool, "functionDeclarations").iter().enumerate() {
            declaration(report, one, &mut names, &format!("{path}[{place}]"));
        }
    }
    let tools = list_at(body, "tools").iter();
    let searches = |tool: &Value| given(tool, "googleSearch").is_some();
    report.require(
        names.is_empty() || !tools.clone().any(searches),
        "search_with_functions",
        "tools",
        "functions and the search exclude each other",
    );
    if names.is_empty() {
        used_without_tools(report, body);
    }
    if let Some(config) = given(body, "toolConfig") {
        tool_config(report, config, &names);
    }
}

fn declaration<'a>(
    report: &mut Report,
    function: &'a Value,
    names: &mut HashSet<&'a str>,
    path: &str,
) {
    if !function.is_object() {
        report.add("bad_tools", path, kind(Some(function)));
        return;
    }
    known_fields(report, function, path, FUNCTION_FIELDS);
    let name = text_at(function, "name").unwrap_or_default();
    report.require(
        is_word(name),
        "bad_tool_name",
        format!("{path}.name"),
        "must match [a-zA-Z0-9_-]{1,64}",
    );
    report.require(
        names.insert(name),
        "duplicate_tool",
        path,
        format!("{name:?} is declared twice"),
    );
    report.require(
        given(function, "description").is_none_or(Value::is_string),
        "bad_tools",
        path,
        "description must be a string",
    );
    let own = given(function, "parameters");
    let json = given(function, "parametersJsonSchema");
    report.require(
        own.is_none() || json.is_none(),
        "bad_parameters",
        path,
        "parameters and parametersJsonSchema exclude each other",
    );
    for (key, value) in [("parameters", own), ("parametersJsonSchema", json)] {
        let path = format!("{path}.{key}");
        match value {
            None => {}
            Some(found) if !found.is_object() => {
                report.add("bad_parameters", path, kind(value));
            }
            Some(found) if key == "parameters" => schema::gemini(report, found, &path),
            Some(found) => report.require(
                text_at(found, "type") == Some("object"),
                "schema_not_object",
                path,
                "the root of a parameter schema must have type \"object\"",
            ),
        }
    }
}

fn used_without_tools(report: &mut Report, body: &Value) {
    for (index, content) in list_at(body, "contents").iter().enumerate() {
        for (place, part) in list_at(content, "parts").iter().enumerate() {
            let used =
                given(part, "functionCall").is_some() || given(part, "functionResponse").is_some();
            report.require(
                !used,
                "tools_missing",
                format!("contents[{index}].parts[{place}]"),
                "calls need the functions to be declared",
            );
        }
    }
}

fn tool_config(report: &mut Report, config: &Value, names: &HashSet<&str>) {
    let Some(calling) = given(config, "functionCallingConfig") else {
        return;
    };
    let path = "toolConfig.functionCallingConfig";
    report.require(
        !names.is_empty(),
        "tool_config_without_tools",
        path,
        "there are no function declarations",
    );
    let mode = given(calling, "mode").map_or(Some("AUTO"), Value::as_str);
    report.require(
        calling.is_object() && matches!(mode, Some("AUTO" | "ANY" | "NONE" | "VALIDATED")),
        "bad_tool_config",
        path,
        "unknown mode",
    );
    if let Some(allowed) = given(calling, "allowedFunctionNames") {
        let declared = allowed.as_array().is_some_and(|list| {
            list.iter()
                .all(|one| one.as_str().is_some_and(|name| names.contains(name)))
        });
        report.require(
            declared && matches!(mode, Some("ANY" | "VALIDATED")),
            "bad_tool_config",
            path,
            "allowedFunctionNames takes declared functions, in mode ANY or VALIDATED only",
        );
    }
}
