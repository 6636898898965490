//! Stored secrets. No response contains a value.

use super::respond::{Answer, Body, JsonBody, Path, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::secrets;
use agentd_client::api::{SetSecret, StoredSecret, StoredSecrets};
use axum::extract::State;
use std::sync::Arc;

pub async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<StoredSecrets> {
    Ok(JsonBody(secrets::list(&daemon).await?))
}

pub async fn set(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<SetSecret>,
) -> Answer<StoredSecret> {
    let set = to_its_end(async move { secrets::set(&daemon, &name, &body.value).await });
    Ok(JsonBody(set.await?))
}

pub async fn remove(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<StoredSecret> {
    let removed = to_its_end(async move { secrets::remove(&daemon, &name).await });
    Ok(JsonBody(removed.await?))
}
