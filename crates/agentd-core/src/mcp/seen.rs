//! What a runtime found out about a server.

use crate::event::{McpLifeCycle, McpTool};

/// The most tools of one server that a model is given.
pub const MOST_TOOLS: usize = 128;

/// What is known about a server at the beginning of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub server: String,
    /// See [`super::Server::settings`].
    pub settings: String,
    pub outcome: Result<Offer, Trouble>,
}

/// What a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub life_cycle: McpLifeCycle,
    pub tools: Vec<McpTool>,
}

/// Why the tools of a server are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It was not ready in time, and may be in a later turn.
    Late,
    /// It cannot be used, for this reason: a sentence for the model and the user.
    Failed(String),
}

/// How long a turn waits for a server whose tools are not known.
pub const PATIENCE_S: u64 = 5;

impl Trouble {
    /// For the model and the user.
    pub fn text(&self, server: &str) -> String {
        match self {
            Self::Late => format!(
                "The MCP server `{server}` was not ready within {PATIENCE_S} s. This turn goes on without its tools; a later \
                 one has them if the server is ready by then."
            ),
            Self::Failed(text) => text.clone(),
        }
    }
}
