//! What a runtime found out about a server, and the tools that a request contains because of it.

use super::server::Known;
use crate::event::{McpLifeCycle, McpTool, Tool};
use crate::window::Window;

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

/// The tools of these servers, as they are declared to the model: by server, in the order of each server's list.
pub fn declarations(window: &Window, servers: &[Known]) -> Vec<Tool> {
    let lists = servers.iter().filter_map(|server| window.mcp_list(server));
    let tools = lists.flat_map(|list| {
        let names = super::tool_names(&list.server, list.tools.iter().map(|it| it.name.as_str()));
        let tools = names.into_iter().zip(&list.tools);
        tools.map(|(name, tool)| Tool {
            name,
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        })
    });
    tools.collect()
}
