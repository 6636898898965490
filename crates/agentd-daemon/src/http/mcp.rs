//! MCP servers: list, lend, tools and call.

use super::events::{named, sse};
use super::respond::{Answer, Body, Fault, JsonBody, Path, to_its_end};
use super::share::Share;
use crate::daemon::Daemon;
use crate::ending::left;
use crate::lifecycle::mcp;
use agentd_client::api::{
    LendServers, McpAsk, McpCall, McpCalled, McpGet, McpOffer, McpPrompt, McpRead, McpResource,
    McpServers,
};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use futures_util::stream::{self, StreamExt as _};
use std::sync::Arc;

pub async fn list(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<McpServers> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(mcp::list(&handle).await?))
}

/// Servers that are lent for as long as the client reads the stream: `lent` when the agent's next process has them, then
/// nothing.
pub async fn lend(
    State(daemon): State<Arc<Daemon>>,
    Extension(share): Extension<Share>,
    Path(name): Path<String>,
    Body(ask): Body<LendServers>,
) -> Result<Response, Fault> {
    let place = share.begin_stream()?;
    let ending = daemon.ending();
    let handle = daemon.active(&name).await?;
    let lease = mcp::lend(&handle, ask).await?;
    let first = stream::once(async { named("lent", "{}".to_owned()) });
    // The lease is part of the stream, and ends with it.
    let rest = stream::unfold((lease, ending), |(lease, mut ending)| async move {
        left(&mut ending).await;
        drop(lease);
        None
    });
    Ok(sse(place, first.chain(rest)))
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
