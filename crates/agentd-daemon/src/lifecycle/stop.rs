//! From now on the agent does not run, whatever comes. Its turn ends as interrupted; what it left running
//! in the background goes on, unless that is to end too.

use super::ops::Asked;
use super::{GRACE, end_background, kill, wait_idle};
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::daemon::Daemon;
use crate::hooks::session;
use crate::problem::Result;
use agentd_client::api::{Ended, Stop};
use agentd_client::{Kind, Problem};
use agentd_core::event::{AgentStopped, Body, Mode, TurnStatus};
use agentd_core::state::Hold;
use std::sync::Arc;
use std::time::Duration;

pub async fn stop(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    stop: Stop,
    asked: &Asked,
) -> Result<Ended> {
    let stopped = {
        let mut guard = handle.lock().await;
        if guard.state.is_held() {
            // It does not run.
            return Ok(Ended::default());
        }
        if asked.is_made(&guard.state)? && !guard.state.stopped {
            // It was stopped, and started again since.
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
        daemon.reconcile(handle, &mut guard);
        // That its conversation is over was told when it was.
        let at = events.first().map(|event| event.seq);
        at.filter(|_| !is_over)
    };
    let grace = stop.grace_ms.map_or(GRACE, Duration::from_millis);
    if wait_idle(daemon, handle, grace).await.is_err() {
        kill(handle).await;
        wait_idle(daemon, handle, GRACE).await.map_err(|_| {
            let what = "the agent does not run any more, but its turn has not ended";
            Problem::new(Kind::Unavailable, what).next("try again in a moment")
        })?;
    }
    if let Some(at) = stopped {
        session::ends(daemon, handle, "stop", at).await;
    }
    match stop.kill_background {
        true => end_background(daemon, handle).await,
        false => Ok(Ended::default()),
    }
}

/// Whether it was there for one turn, which has ended.
fn is_over(guard: &AgentGuard<'_>) -> bool {
    let last = guard.state.last_turn.as_ref().map(|turn| turn.status);
    let has_ended = last.is_some_and(|last| last != TurnStatus::Limited);
    guard.state.mode == Mode::Oneshot && guard.state.turn.is_none() && has_ended
}
