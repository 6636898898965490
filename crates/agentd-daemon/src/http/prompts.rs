//! Prompts and their answers.

use super::respond::{Answer, Body, JsonBody, Path, Query, to_its_end};
use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::error::{Error, Kind};
use crate::{answer, lifecycle};
use agentd_client::api::{Send, Sent};
use axum::extract::{ConnectInfo, State};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The longest time that a request may wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub async fn send(
    State(daemon): State<Arc<Daemon>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    Path(name): Path<String>,
    Body(body): Body<Send>,
) -> Answer<Sent> {
    if matches!(caller, Caller::Tool { .. }) && !body.env.is_empty() {
        // A base URL among the variables could redirect the agent's requests, with its keys, to another server.
        let error = Error::new(Kind::Refused, "an agent's tools may not set variables");
        return Err(error.next("send the prompt without `env`").into());
    }
    let done = to_its_end(async move {
        let handle = daemon.named(&name).await?;
        lifecycle::send::send(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}

#[derive(Deserialize)]
pub struct Wait {
    #[serde(default)]
    wait_ms: u64,
}

pub async fn answer(
    State(daemon): State<Arc<Daemon>>,
    Path((name, prompt)): Path<(String, String)>,
    Query(wait): Query<Wait>,
) -> Answer<agentd_client::api::Answer> {
    let handle = daemon.named(&name).await?;
    let wait = Duration::from_millis(wait.wait_ms).min(LONGEST_WAIT);
    let prompt = answer::find(&handle, &prompt).await?;
    let answer = answer::answer(&handle, prompt, wait).await?;
    Ok(JsonBody(answer))
}
