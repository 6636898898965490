//! Stops an agent: it does not run until it is started again. Its turn ends as interrupted; its background tasks and
//! subagents continue, unless `kill_background` is set.

use super::ops::Asked;
use super::{GRACE, end_background, kill, wait_idle};
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use agentd_client::api::{Ended, Stop};
use agentd_core::event::{AgentStopped, Body, Mode, TurnStatus};
use agentd_core::state::Hold;
use std::time::Duration;

pub async fn stop(handle: &AgentHandle, stop: Stop, asked: &Asked) -> Result<Ended> {
    let stopped = {
        let mut guard = handle.lock().await;
        if guard.state.is_held() {
            // A held agent does not run.
            return Ok(Ended::default());
        }
        if asked.is_made(&guard.state)? && !guard.state.stopped {
            // A repeated request: the agent was stopped, and has been started since.
            return Ok(Ended::default());
        }
        guard.wanted = false;
        let is_over = is_over(&guard);
        let is_stopped = guard.state.stopped && guard.state.hold == Hold::No;
        let events = match is_stopped {
            true => Vec::new(),
            false => {
                let bodies = [Body::from(AgentStopped {})].into_iter();
                guard.note(bodies.chain(asked.line())).await?
            }
        };
        guard.reconcile();
        // The SessionEnd hooks of a one-shot agent ran when its turn ended, and do not run again.
        let at = events.first().map(|event| event.seq);
        at.filter(|_| !is_over)
    };
    let grace = stop.grace_ms.map_or(GRACE, Duration::from_millis);
    if wait_idle(handle, grace).await.is_err() {
        kill(handle).await;
        wait_idle(handle, GRACE).await.map_err(|_| {
            let what = "the agent is stopped, but its turn has not ended yet";
            Error::new(Kind::Unavailable, what).next("try again in a moment")
        })?;
    }
    if let Some(at) = stopped {
        session::ends(handle, "stop", at).await;
    }
    match stop.kill_background {
        true => end_background(handle).await,
        false => Ok(Ended::default()),
    }
}

/// Whether it is a one-shot agent whose turn has ended.
fn is_over(guard: &AgentGuard<'_>) -> bool {
    let last = guard.state.last_turn.as_ref().map(|turn| turn.status);
    let has_ended = last.is_some_and(|last| last != TurnStatus::Limited);
    guard.state.mode == Mode::Oneshot && guard.state.turn.is_none() && has_ended
}
