//! The tools of a server, within limits.

use super::Error;
use super::connect::Connection;
use agentd_core::event::McpTool;
use agentd_core::mcp::MOST_TOOLS;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_PAGES: usize = 32;
/// The longest description, and the largest schema, in bytes.
const DESCRIPTION_BYTES: usize = 4096;
const SCHEMA_BYTES: usize = 64 * 1024;

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
            error.message
        ))),
        Ok(Err(ServiceError::TransportClosed)) => Err(Error::Ended(String::new())),
        Ok(Err(error)) => Err(Error::Protocol(error.to_string())),
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
        let ServerResult::ListToolsResult(page) = connection.peer.send_request(request).await?
        else {
            return Err(ServiceError::UnexpectedResponse);
        };
        tools.extend(page.tools.into_iter().filter_map(tool));
        if tools.len() >= MOST_TOOLS || page.next_cursor.is_none() {
            break;
        }
        cursor = page.next_cursor;
    }
    tools.truncate(MOST_TOOLS);
    Ok(tools)
}

/// The tool as the model gets it; none if its description of the arguments is too large.
fn tool(tool: Tool) -> Option<McpTool> {
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let description = agentd_core::plain::only_plain(description.unwrap_or_default());
    let end = description.floor_char_boundary(DESCRIPTION_BYTES);
    let parameters = schema((*tool.input_schema).clone());
    (parameters.to_string().len() <= SCHEMA_BYTES).then(|| McpTool {
        name: tool.name.into_owned(),
        description: description[..end].to_owned(),
        parameters,
    })
}

/// A schema of an object that every provider accepts.
fn schema(mut schema: Map<String, Value>) -> Value {
    schema.retain(|key, _| !REFUSED_KEYS.contains(&key.as_str()));
    schema.insert("type".to_owned(), Value::from("object"));
    let properties = schema.entry("properties");
    let properties = properties.or_insert_with(|| Value::Object(Map::new()));
    if !properties.is_object() {
        *properties = Value::Object(Map::new());
    }
    Value::Object(schema)
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
}
