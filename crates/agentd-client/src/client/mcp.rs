//! MCP servers.

use super::transport::{escaped, json, of};
use super::{Client, Error};
use crate::api::{
    LendServers, McpAsk, McpCall, McpCalled, McpGet, McpOffer, McpPrompt, McpRead, McpResource,
    McpServers,
};
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use sse_stream::SseStream;

/// Servers that are lent. They are taken back when this is dropped.
pub struct Lease(SseStream<Incoming>);

impl Lease {
    /// Waits until the daemon is gone.
    pub async fn ended(&mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

impl Client {
    /// The servers in the settings of an agent. Starts none.
    pub async fn mcp_servers(&self, name: &str) -> Result<McpServers, Error> {
        self.get(&of(name, "/mcp")).await
    }

    /// Lends servers to an agent, for as long as what is returned is there and the daemon lives. The agent has them when this
    /// returns.
    pub async fn lend_servers(&self, name: &str, lend: &LendServers) -> Result<Lease, Error> {
        let body = self
            .post_stream(&of(name, "/mcp/lend"), json(lend)?)
            .await?;
        let mut lease = Lease(SseStream::new(body));
        loop {
            match lease.0.next().await {
                Some(Ok(item)) if item.event.as_deref() == Some("lent") => return Ok(lease),
                // A comment.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Error::Broken(error.to_string())),
                None => return Err(Error::Broken("the stream was cut off".to_owned())),
            }
        }
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
