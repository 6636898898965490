//! The prompts that wait for an agent.

use super::respond::{Answer, Body, JsonBody, Path, Query, Under, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::{self, ops::Asked};
use agentd_client::api::{EditPrompt, MovePrompt, Queue, RemovePrompts};
use agentd_core::event::OpVerb;
use axum::extract::State;
use std::sync::Arc;

pub async fn list(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Queue> {
    let handle = daemon.named(&name).await?;
    Ok(JsonBody(lifecycle::queue::list(&handle).await?))
}

pub async fn edit(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<EditPrompt>,
) -> Answer<Queue> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::EditPrompt, &body.prompt)?;
        lifecycle::queue::edit(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn move_prompt(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<MovePrompt>,
) -> Answer<Queue> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::MovePrompt, &body)?;
        lifecycle::queue::move_prompt(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn remove(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<RemovePrompts>,
) -> Answer<Queue> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::RemovePrompts, &body)?;
        lifecycle::queue::remove(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}
