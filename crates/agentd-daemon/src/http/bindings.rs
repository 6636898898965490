//! Outside addresses that are bound to agents.

use super::respond::{Answer, Body, JsonBody, Path, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::bind;
use agentd_client::api::{Bind, Binding, BindingMessage, Bindings, Sent, Unbind};
use axum::extract::State;
use std::sync::Arc;

pub async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<Bindings> {
    Ok(JsonBody(bind::list(&daemon).await?))
}

pub async fn bind(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Bind>,
) -> Answer<Binding> {
    let bound = to_its_end(async move {
        let handle = daemon.named(&name).await?;
        bind::bind(&handle, body).await
    });
    Ok(JsonBody(bound.await?))
}

pub async fn unbind(
    State(daemon): State<Arc<Daemon>>,
    Path(address): Path<String>,
    Body(body): Body<Unbind>,
) -> Answer<Binding> {
    let unbound = to_its_end(async move { bind::unbind(&daemon, &address, body).await });
    Ok(JsonBody(unbound.await?))
}

pub async fn message(
    State(daemon): State<Arc<Daemon>>,
    Path(address): Path<String>,
    Body(body): Body<BindingMessage>,
) -> Answer<Sent> {
    let sent = to_its_end(async move { bind::message(&daemon, &address, body).await });
    Ok(JsonBody(sent.await?))
}
