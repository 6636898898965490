//! Hooks: list, check and test.

use super::respond::{Answer, Body, JsonBody, Query, to_its_end};
use crate::daemon::Daemon;
use crate::hooks::trial;
use agentd_client::api::{CheckHooks, CheckedHooks, HookList, HooksQuery, TestHooks, TestedHooks};
use axum::extract::State;
use std::sync::Arc;

pub async fn list(
    State(daemon): State<Arc<Daemon>>,
    Query(query): Query<HooksQuery>,
) -> Answer<HookList> {
    Ok(JsonBody(trial::list(&daemon, &query).await?))
}

pub async fn check(Body(body): Body<CheckHooks>) -> Answer<CheckedHooks> {
    Ok(JsonBody(trial::check(&body.text)))
}

pub async fn test(
    State(daemon): State<Arc<Daemon>>,
    Body(body): Body<TestHooks>,
) -> Answer<TestedHooks> {
    let done = to_its_end(async move { trial::test(&daemon, body).await });
    Ok(JsonBody(done.await?))
}
