//! The MCP servers of an agent, and what the user asks them.

use super::Env;
use agentd_core::event::McpLifeCycle;
use agentd_core::mcp::Source;
use agentd_core::mcp::work::Piece;
use agentd_core::spec::McpServer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `GET /v1/agents/{name}/mcp`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServers {
    /// Sorted by name.
    pub servers: Vec<McpEntry>,
    /// Files of the project with servers that are not used, because their content is not trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// Entries of trusted files that cannot be used, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

/// A server in the settings of an agent. No value of a variable or header is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpEntry {
    pub name: String,
    pub source: Source,
    /// The program or the URL; none if the settings cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// How many tools the model is given; none if the server's list is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why it cannot be used, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Servers by their names, with the values of their variables and headers.
pub type LentServers = BTreeMap<String, McpServer>;

/// `POST /v1/agents/{name}/mcp/lend`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LendServers {
    /// Their values are taken as they are, and kept in memory only.
    pub servers: LentServers,
}

/// `POST /v1/agents/{name}/mcp/{server}/tools`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpAsk {
    /// The caller's variables, for `${NAME}` in the settings.
    pub env: Env,
}

/// What a server offers at this moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpOffer {
    pub server: String,
    pub life_cycle: McpLifeCycle,
    pub tools: Vec<McpToolInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpToolInfo {
    /// The server's own name of the tool.
    pub name: String,
    /// Its name in requests, rules and hooks.
    pub tool: String,
    pub description: String,
    /// The settings say that it changes nothing.
    pub read_only: bool,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// `POST /v1/agents/{name}/mcp/{server}/call`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpCall {
    /// The server's own name of the tool.
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub env: Env,
}

/// The result of a call. It is not part of any conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpCalled {
    pub is_error: bool,
    pub text: String,
    /// How many images the result had. They are not shown.
    pub images: usize,
}

/// `POST /v1/agents/{name}/mcp/{server}/read`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpRead {
    pub uri: String,
    pub env: Env,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpResource {
    pub pieces: Vec<Piece>,
}

/// `POST /v1/agents/{name}/mcp/{server}/prompt`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpGet {
    pub prompt: String,
    pub arguments: Map<String, Value>,
    pub env: Env,
}

/// A prompt of a server, as one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpPrompt {
    pub text: String,
}
