//! From now on the agent runs whenever there is something to do.

use super::ops::Asked;
use super::{GRACE, quiet};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::hooks::session;
use crate::problem::Result;
use agentd_client::api::Start;
use agentd_client::{Kind, Problem};
use agentd_core::event::{AgentStarted, Body};
use std::sync::Arc;

pub async fn start(
    daemon: &Arc<Daemon>,
    desk: &Arc<Desk>,
    start: Start,
    asked: &Asked,
) -> Result<()> {
    let is_stopping = {
        let guard = desk.lock().await;
        let is_made = asked.is_made(&guard.state)?;
        if is_made && guard.state.stopped {
            // It was started, and stopped again since.
            return Ok(());
        }
        guard.state.stopped && guard.state.turn.is_some()
    };
    if is_stopping {
        // The turn that was to end does so first.
        quiet(daemon, desk, GRACE).await.map_err(|_| {
            let what = "the agent is still being stopped";
            Problem::new(Kind::Unavailable, what).next("try again in a moment")
        })?;
    }
    let mut guard = desk.lock().await;
    daemon.supply(&mut guard, &start.env);
    guard.starts.forgive();
    let is_made = asked.is_made(&guard.state)?;
    if !is_made && (guard.state.stopped || guard.state.failed.is_some()) {
        let bodies = [Body::from(AgentStarted {})].into_iter();
        let events = guard.note(bodies.chain(asked.line())).await?;
        let at = events.first().map(|event| event.seq);
        session::goes_on(daemon, desk, &mut guard, at);
    }
    guard.wanted = true;
    daemon.mind(desk, &mut guard);
    Ok(())
}
