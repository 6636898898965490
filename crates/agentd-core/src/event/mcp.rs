//! What MCP servers offer.

use crate::id::ApprovalId;
use crate::question::Question;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an MCP server offers, as found before the first request of a turn. Written when it changes. Content: names and
/// descriptions are texts of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpListed {
    pub server: String,
    /// The digest of the settings that the server was started with. The list counts only for these.
    pub settings: String,
    /// How the server was addressed; the next start tries it first. None if it could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_cycle: Option<McpLifeCycle>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpTool>,
    /// Why the server's tools are missing. Told to the model like a notice; a list has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Which revision of the protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpLifeCycle {
    /// Since revision 2026-07-28: each request stands alone.
    Stateless,
    /// Earlier revisions begin with `initialize`.
    Handshake,
}

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpTool {
    /// The server's own name of the tool.
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// The question of an MCP server to the user. The `approval_requested` after it has the state; this has the texts. Content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    pub approval: ApprovalId,
    #[serde(flatten)]
    pub question: Question,
}

/// What the user filled in. The `approval_answered` after it has the decision. Content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub approval: ApprovalId,
    pub content: Map<String, Value>,
}
