//! What the process that asks an MCP server for a user gets on stdin, and what it reports on stdout.

use super::server::Server;
use crate::event::{McpLifeCycle, McpTool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The first argument of that process.
pub const ARGUMENT: &str = "__mcp";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    pub server: Server,
    pub ask: Ask,
    pub cwd: PathBuf,
    /// For the files of the server while it runs.
    pub state: PathBuf,
    /// The environment of the agent's tools.
    pub env: BTreeMap<String, String>,
    /// The sandbox of the agent's tools, in the form of `agentd-process`; none means no sandbox.
    pub confined: Option<Value>,
    pub secrets: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Tools,
    Call {
        tool: String,
        arguments: Map<String, Value>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Tools {
        life_cycle: McpLifeCycle,
        tools: Vec<McpTool>,
    },
    Called {
        is_error: bool,
        text: String,
        images: usize,
    },
    /// The server cannot be used, or the call has no result.
    Failed(String),
}
