//! MCP servers.

use super::transport::{escaped, of};
use super::{Client, Error};
use crate::api::{McpAsk, McpCall, McpCalled, McpOffer, McpServers};

impl Client {
    /// The servers in the settings of an agent. Starts none.
    pub async fn mcp_servers(&self, name: &str) -> Result<McpServers, Error> {
        self.get(&of(name, "/mcp")).await
    }

    /// Starts a server and returns what it offers.
    pub async fn mcp_tools(
        &self,
        name: &str,
        server: &str,
        ask: &McpAsk,
    ) -> Result<McpOffer, Error> {
        let path = format!("/mcp/{}/tools", escaped(server));
        self.post_as_it_is(&of(name, &path), ask).await
    }

    /// Calls a tool of a server. Never sent twice.
    pub async fn mcp_call(
        &self,
        name: &str,
        server: &str,
        call: &McpCall,
    ) -> Result<McpCalled, Error> {
        let path = format!("/mcp/{}/call", escaped(server));
        self.post_once(&of(name, &path), call).await
    }
}
