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

/// Why a server cannot be used at the moment, for the model and the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble(pub String);
