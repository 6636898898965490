//! MCP servers.

use super::transport::{escaped, of};
use super::{Client, Error};
use crate::api::{
    McpAsk, McpCall, McpCalled, McpGet, McpOffer, McpPrompt, McpRead, McpResource, McpServers,
};

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

    /// Reads a resource of a server.
    pub async fn mcp_read(
        &self,
        name: &str,
        server: &str,
        read: &McpRead,
    ) -> Result<McpResource, Error> {
        let path = format!("/mcp/{}/read", escaped(server));
        self.post_as_it_is(&of(name, &path), read).await
    }

    /// Gets a prompt of a server.
    pub async fn mcp_prompt(
        &self,
        name: &str,
        server: &str,
        get: &McpGet,
    ) -> Result<McpPrompt, Error> {
        let path = format!("/mcp/{}/prompt", escaped(server));
        self.post_as_it_is(&of(name, &path), get).await
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
