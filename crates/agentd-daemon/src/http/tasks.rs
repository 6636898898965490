//! Background tasks: list, output and stop.

use super::respond::{Answer, JsonBody, Path, Query, Under, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle;
use agentd_client::api::{Output, OutputQuery, Tasks};
use axum::extract::State;
use std::sync::Arc;

pub async fn of_all(State(daemon): State<Arc<Daemon>>) -> Answer<Tasks> {
    Ok(JsonBody(lifecycle::tasks::list_all(&daemon).await?))
}

pub async fn of_agent(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<Tasks> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(lifecycle::tasks::list(&handle).await))
}

pub async fn output(
    State(daemon): State<Arc<Daemon>>,
    Path((name, task)): Path<(String, String)>,
    Query(query): Query<OutputQuery>,
) -> Answer<Output> {
    let handle = daemon.any(&name).await?;
    let task = lifecycle::tasks::output::find(&handle, &task).await?;
    let output = lifecycle::tasks::output::output(&handle, task, query.offset).await?;
    Ok(JsonBody(output))
}

/// Stops one task, by its id, or all tasks of an agent.
pub async fn stop(
    State(daemon): State<Arc<Daemon>>,
    Path(which): Path<String>,
    Query(Under { op }): Query<Under>,
) -> Answer<Tasks> {
    let done = to_its_end(async move { lifecycle::tasks::stop(&daemon, &which, op).await });
    Ok(JsonBody(done.await?))
}
