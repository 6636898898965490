//! The tools of a server, within limits.

use super::connect::Connection;
use super::{Error, short};
use agentd_core::event::McpTool;
use agentd_core::mcp::MOST_TOOLS;
use rmcp::model::{
    ClientRequest, CustomResult, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_PAGES: usize = 32;
/// The longest description, and the largest schema, in bytes.
const DESCRIPTION_BYTES: usize = 4096;
const SCHEMA_BYTES: usize = 64 * 1024;
/// The longest name of a tool, and the largest list, in bytes. Each request contains the list.
const NAME_BYTES: usize = 128;
const LIST_BYTES: usize = 256 * 1024;
/// The longest name of a parameter that every provider accepts.
const PARAMETER_BYTES: usize = 64;

/// Keys of a schema that providers refuse at the top. The server checks the arguments itself.
const REFUSED_KEYS: [&str; 7] = ["$schema", "$id", "anyOf", "oneOf", "allOf", "not", "enum"];

pub(super) async fn tools(connection: &Connection) -> Result<Vec<McpTool>, Error> {
    let info = connection.peer.peer_info();
    if info.is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    match tokio::time::timeout(PATIENCE, pages(connection)).await {
        Ok(Ok(tools)) => Ok(tools),
        Ok(Err(ServiceError::McpError(error))) => Err(Error::Protocol(format!(
            "it does not list its tools: {}",
            short(&error.message)
        ))),
        Ok(Err(ServiceError::TransportClosed)) => Err(Error::Ended(String::new())),
        Ok(Err(error)) => Err(Error::Protocol(short(&error.to_string()))),
        Err(_) => Err(Error::Silent(PATIENCE)),
    }
}

async fn pages(connection: &Connection) -> Result<Vec<McpTool>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ListToolsRequest {
            method: Default::default(),
            params: Some(params),
            extensions: Default::default(),
        };
        // Not `list_tools`, which may answer from a cache.
        let request = ClientRequest::ListToolsRequest(request);
        let (listed, next) = match connection.peer.send_request(request).await? {
            ServerResult::ListToolsResult(page) => (page.tools, page.next_cursor),
            ServerResult::CustomResult(CustomResult(page)) => {
                readable(page).ok_or(ServiceError::UnexpectedResponse)?
            }
            _ => return Err(ServiceError::UnexpectedResponse),
        };
        tools.extend(listed.into_iter().filter_map(tool));
        if tools.len() >= MOST_TOOLS || next.is_none() {
            break;
        }
        cursor = next;
    }
    Ok(limited(tools))
}

/// The tools of a page that does not follow the format as a whole, for example because one of them has no schema; the rest
/// is left out. `None` if it is no list at all.
fn readable(mut page: Value) -> Option<(Vec<Tool>, Option<String>)> {
    let next = page["nextCursor"].as_str().map(str::to_owned);
    let Value::Array(listed) = page.get_mut("tools")?.take() else {
        return None;
    };
    let mut tools = Vec::with_capacity(listed.len().min(MOST_TOOLS));
    for tool in listed {
        let name = tool["name"].as_str().map(short);
        match serde_json::from_value(tool) {
            Ok(tool) => tools.push(tool),
            Err(error) => {
                tracing::warn!(tool = name, %error, "a tool of an MCP server was left out");
            }
        }
    }
    Some((tools, next))
}

/// The tools up to the limits of a list. A tool that is listed twice counts once.
fn limited(tools: Vec<McpTool>) -> Vec<McpTool> {
    let (mut names, mut bytes) = (BTreeSet::new(), 0);
    let tools = tools.into_iter().filter(|tool| {
        if names.contains(&tool.name) {
            return false;
        }
        let size = tool.description.len() + tool.parameters.to_string().len();
        let fits = bytes + size <= LIST_BYTES;
        if fits {
            bytes += size;
            names.insert(tool.name.clone());
        }
        fits
    });
    tools.take(MOST_TOOLS).collect()
}

/// The tool as the model gets it; none if a provider would refuse it, and with it every request.
fn tool(tool: Tool) -> Option<McpTool> {
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let description = agentd_core::plain::only_plain(description.unwrap_or_default());
    let end = description.floor_char_boundary(DESCRIPTION_BYTES);
    let parameters = schema((*tool.input_schema).clone());
    let is_named = !tool.name.is_empty() && tool.name.len() <= NAME_BYTES;
    let is_small = parameters.to_string().len() <= SCHEMA_BYTES;
    (is_named && is_small && has_plain_names(&parameters)).then(|| McpTool {
        name: tool.name.into_owned(),
        description: description[..end].to_owned(),
        parameters,
    })
}

/// Whether the parameters have names that every provider accepts.
fn has_plain_names(parameters: &Value) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let properties = parameters.get("properties").and_then(Value::as_object);
    properties.is_none_or(|properties| {
        let mut names = properties.keys();
        names.all(|name| {
            !name.is_empty() && name.len() <= PARAMETER_BYTES && name.chars().all(is_plain)
        })
    })
}

/// A schema of an object that every provider accepts.
fn schema(mut schema: Map<String, Value>) -> Value {
    schema.retain(|key, _| !REFUSED_KEYS.contains(&key.as_str()));
    schema.insert("type".to_owned(), Value::from("object"));
    let properties = schema.entry("properties");
    properties.or_insert_with(|| Value::Object(Map::new()));
    let mut schema = Value::Object(schema);
    repair(&mut schema);
    schema
}

/// Removes what is no JSON Schema: the server checks the arguments itself.
fn repair(schema: &mut Value) {
    let Value::Object(keys) = schema else {
        if !schema.is_boolean() {
            *schema = Value::Object(Map::new());
        }
        return;
    };
    keys.retain(|key, value| match key.as_str() {
        "type" => value.is_string() || value.is_array(),
        "required" => value
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string)),
        "enum" | "anyOf" | "oneOf" | "allOf" => value.as_array().is_some_and(|all| !all.is_empty()),
        "items" | "not" | "additionalProperties" => value.is_object() || value.is_boolean(),
        "$defs" | "definitions" | "patternProperties" => value.is_object(),
        _ => true,
    });
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("properties", Value::Object(all)) => all.values_mut().for_each(repair),
            ("properties", value) => *value = Value::Object(Map::new()),
            ("$defs" | "definitions" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(repair);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter_mut().for_each(repair),
            ("items" | "not" | "additionalProperties", value) => repair(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_one_of_an_object() {
        let given = json!({"$schema": "x", "anyOf": [], "required": ["a"]});
        let Value::Object(given) = given else {
            panic!()
        };
        let expected = json!({"type": "object", "properties": {}, "required": ["a"]});
        assert_eq!(schema(given), expected);
    }

    #[test]
    fn what_is_no_schema_is_removed() {
        let given = json!({
            "type": "object", "required": "a", "additionalProperties": "no",
            "properties": {"a": 7, "b": true, "c": {"type": 1, "enum": [], "items": {"required": [1], "type": "string"}}}
        });
        let Value::Object(given) = given else {
            panic!()
        };
        let expected = json!({"type": "object", "properties": {"a": {}, "b": true, "c": {"items": {"type": "string"}}}});
        assert_eq!(schema(given), expected);
    }

    fn listed(name: &str, parameters: Value) -> Option<McpTool> {
        let given = json!({"name": name, "description": "d", "inputSchema": parameters});
        tool(serde_json::from_value(given).unwrap())
    }

    #[test]
    fn a_tool_that_a_provider_would_refuse_is_left_out() {
        assert!(listed("a", json!({"type": "object"})).is_some());
        for name in [String::new(), "n".repeat(NAME_BYTES + 1)] {
            assert_eq!(listed(&name, json!({"type": "object"})), None);
        }
        let odd = json!({"type": "object", "properties": {"a b": {}}});
        assert_eq!(listed("a", odd), None);
        let large = json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES)});
        assert_eq!(listed("a", large), None);
    }

    #[test]
    fn one_tool_without_a_schema_does_not_cost_the_others() {
        let page = json!({"tools": [
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "bad"},
            7,
            {"name": "also", "inputSchema": {"type": "object"}},
        ], "nextCursor": "2"});
        let (tools, next) = readable(page).unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "also"]);
        assert_eq!(next.as_deref(), Some("2"));
        assert!(readable(json!({"ok": true})).is_none());
        assert!(readable(json!(null)).is_none());
    }

    #[test]
    fn a_list_has_a_limit_and_no_tool_twice() {
        let of = |name: String, bytes: usize| McpTool {
            name,
            description: "d".repeat(bytes),
            parameters: json!({}),
        };
        let twice = limited(vec![of("a".to_owned(), 1), of("a".to_owned(), 2)]);
        assert_eq!(twice.len(), 1);
        let many = (0..1000).map(|n| of(n.to_string(), 0)).collect();
        assert_eq!(limited(many).len(), MOST_TOOLS);
        let large = (0..100)
            .map(|n| of(n.to_string(), LIST_BYTES / 10))
            .collect();
        assert_eq!(limited(large).len(), 9);
    }
}
