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
    /// A resource.
    Read {
        uri: String,
    },
    /// A prompt, with its arguments.
    Prompt {
        name: String,
        arguments: Map<String, Value>,
    },
}

/// A part of a resource: text, or data in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
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
    Read(Vec<Piece>),
    Prompt(String),
    /// The server cannot be used, or the call has no result.
    Failed(String),
}
