//! From now on the agent does not run, whatever comes. Its turn ends as interrupted; what it left running
//! in the background goes on, unless that is to end too.

use super::{GRACE, end_background, kill, quiet};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::hooks::session;
use crate::problem::Result;
use agentd_client::api::{Ended, Stop};
use agentd_client::{Kind, Problem};
use agentd_core::event::AgentStopped;
use std::sync::Arc;
use std::time::Duration;

pub async fn stop(daemon: &Arc<Daemon>, desk: &Arc<Desk>, stop: Stop) -> Result<Ended> {
    let stopped = {
        let mut guard = desk.lock().await;
        guard.wanted = false;
        let events = match guard.state.stopped {
            true => Vec::new(),
            false => guard.note([AgentStopped {}.into()]).await?,
        };
        daemon.mind(desk, &mut guard);
        events.first().map(|event| event.seq)
    };
    let grace = stop.grace_ms.map_or(GRACE, Duration::from_millis);
    if quiet(daemon, desk, grace).await.is_err() {
        kill(desk).await;
        quiet(daemon, desk, GRACE).await.map_err(|_| {
            let what = "the agent does not run any more, but its turn has not ended";
            Problem::new(Kind::Unavailable, what).next("try again in a moment")
        })?;
    }
    if let Some(at) = stopped {
        session::ends(daemon, desk, "stop", at).await;
    }
    match stop.kill_background {
        true => end_background(daemon, desk).await,
        false => Ok(Ended::default()),
    }
}
