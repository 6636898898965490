//! Starts an agent: from now on it runs whenever there is work. A held agent is released first.

use super::ops::Asked;
use super::{GRACE, held, wait_idle};
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use agentd_client::api::{Release, Start};
use agentd_core::event::{AgentStarted, Body};
use agentd_core::state::Hold;
use agentd_failpoint as failpoint;

pub async fn start(handle: &AgentHandle, start: Start, asked: &Asked) -> Result<()> {
    release(handle, start.release.as_ref(), asked).await?;
    let is_stopping = {
        let guard = handle.lock().await;
        let is_made = asked.is_made(&guard.state)?;
        if is_made && guard.state.stopped && guard.state.hold == Hold::No {
            // A repeated request: the agent was started, and has been stopped since.
            return Ok(());
        }
        guard.state.stopped && guard.state.turn.is_some()
    };
    if is_stopping {
        // The turn that the stop interrupts must end first.
        wait_idle(handle, GRACE).await.map_err(|_| {
            let what = "the agent is still stopping";
            Error::new(Kind::Unavailable, what).next("try again in a moment")
        })?;
    }
    let mut guard = handle.lock().await;
    guard.merge_env(&start.env);
    guard.starts.forgive();
    let is_made = asked.is_made(&guard.state)?;
    let is_down = guard.state.stopped || guard.state.failed.is_some();
    if is_down && (!is_made || guard.state.hold == Hold::Released) {
        let op = asked.line().filter(|_| !is_made);
        let bodies = [Body::from(AgentStarted {})].into_iter();
        let events = guard.note(bodies.chain(op)).await?;
        let at = events.first().map(|event| event.seq);
        session::resumes(&mut guard, at).await;
    }
    guard.wanted = true;
    guard.reconcile();
    Ok(())
}

/// Releases a held agent: the op, the dropped parts and the release are one append.
async fn release(handle: &AgentHandle, ask: Option<&Release>, asked: &Asked) -> Result<()> {
    let mut guard = handle.lock().await;
    if !guard.state.is_held() || asked.is_made(&guard.state)? {
        return Ok(());
    }
    let bodies = held::release(&guard, ask)?;
    let events = guard.note(bodies.into_iter().chain(asked.line())).await?;
    failpoint::hit("after", "agent_released");
    if !guard.state.stopped {
        let at = events.first().map(|event| event.seq);
        session::resumes(&mut guard, at).await;
    }
    Ok(())
}
