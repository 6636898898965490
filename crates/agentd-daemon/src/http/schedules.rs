//! Schedules of agents.

use super::respond::{Answer, Body, JsonBody, Path, Query, Under, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::{self, ops::Asked};
use agentd_client::api::{AddSchedule, Schedule, Schedules};
use agentd_core::event::OpVerb;
use axum::extract::State;
use std::sync::Arc;

pub async fn of_all(State(daemon): State<Arc<Daemon>>) -> Answer<Schedules> {
    Ok(JsonBody(lifecycle::schedule::list_all(&daemon).await?))
}

pub async fn of_agent(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<Schedules> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(lifecycle::schedule::list(&handle).await?))
}

pub async fn add(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<AddSchedule>,
) -> Answer<Schedule> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        // Without the text.
        let about = (
            &body.name,
            &body.when,
            body.action,
            body.missed,
            body.overlap,
        );
        let asked = Asked::new(op, OpVerb::AddSchedule, &about)?;
        lifecycle::schedule::add(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

/// A verb of one schedule.
macro_rules! verb {
    ($name:ident, $verb:expr, $answer:ty) => {
        pub async fn $name(
            State(daemon): State<Arc<Daemon>>,
            Path((name, schedule)): Path<(String, String)>,
            Query(Under { op }): Query<Under>,
        ) -> Answer<$answer> {
            let done = to_its_end(async move {
                let handle = daemon.active(&name).await?;
                let asked = Asked::new(op, $verb, &schedule)?;
                lifecycle::schedule::$name(&handle, &schedule, &asked).await
            });
            Ok(JsonBody(done.await?))
        }
    };
}

verb!(pause, OpVerb::PauseSchedule, Schedule);
verb!(resume, OpVerb::ResumeSchedule, Schedule);
verb!(run, OpVerb::RunSchedule, Schedule);
verb!(remove, OpVerb::RemoveSchedule, Schedules);
