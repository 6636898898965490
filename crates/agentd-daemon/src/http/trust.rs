//! Which files of projects the user trusts.

use super::respond::{Answer, Body, JsonBody, Query, to_its_end};
use crate::daemon::Daemon;
use crate::trust;
use agentd_client::api::{ProjectTrust, Trust, TrustQuery};
use axum::extract::State;
use std::sync::Arc;

pub async fn show(
    State(daemon): State<Arc<Daemon>>,
    Query(query): Query<TrustQuery>,
) -> Answer<ProjectTrust> {
    Ok(JsonBody(trust::show(&daemon, query.dir).await?))
}

pub async fn set(
    State(daemon): State<Arc<Daemon>>,
    Body(body): Body<Trust>,
) -> Answer<ProjectTrust> {
    let done = to_its_end(async move { trust::set(&daemon, body).await });
    Ok(JsonBody(done.await?))
}
