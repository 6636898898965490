//! MCP servers: list, tools and call.

use super::respond::{Answer, Body, JsonBody, Path, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::mcp;
use agentd_client::api::{
    McpAsk, McpCall, McpCalled, McpGet, McpOffer, McpPrompt, McpRead, McpResource, McpServers,
};
use axum::extract::State;
use std::sync::Arc;

pub async fn list(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<McpServers> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(mcp::list(&handle).await?))
}

pub async fn tools(
    State(daemon): State<Arc<Daemon>>,
    Path((name, server)): Path<(String, String)>,
    Body(ask): Body<McpAsk>,
) -> Answer<McpOffer> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        mcp::tools(&handle, &server, &ask).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn call(
    State(daemon): State<Arc<Daemon>>,
    Path((name, server)): Path<(String, String)>,
    Body(call): Body<McpCall>,
) -> Answer<McpCalled> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        mcp::call(&handle, &server, call).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn read(
    State(daemon): State<Arc<Daemon>>,
    Path((name, server)): Path<(String, String)>,
    Body(read): Body<McpRead>,
) -> Answer<McpResource> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        mcp::read(&handle, &server, read).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn prompt(
    State(daemon): State<Arc<Daemon>>,
    Path((name, server)): Path<(String, String)>,
    Body(get): Body<McpGet>,
) -> Answer<McpPrompt> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        mcp::prompt(&handle, &server, get).await
    });
    Ok(JsonBody(done.await?))
}
