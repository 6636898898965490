//! Replaces the agent's process. A turn in progress continues in the new process.

use super::ops::Asked;
use super::{GRACE, kill};
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::hooks::{observe, session};
use crate::spawn::{Died, caught};
use agentd_client::api::Restart;
use agentd_core::event::{AgentStarted, Body};
use std::time::Duration;

pub async fn restart(handle: &AgentHandle, ask: Restart, asked: &Asked) -> Result<()> {
    let grace = ask.grace_ms.map_or(GRACE, Duration::from_millis);
    {
        let mut guard = handle.lock().await;
        guard.check_released()?;
        let made = asked.made(&guard.state)?.map(|made| made.incarnation);
        match made {
            // The new process has connected already.
            Some(before) if guard.state.incarnation > before => return Ok(()),
            Some(_) => {}
            None => {
                let is_down = guard.state.stopped || guard.state.failed.is_some();
                let started = is_down.then(|| Body::from(AgentStarted {}));
                guard.note(started.into_iter().chain(asked.line())).await?;
            }
        }
        guard.starts.forgive();
        guard.merge_env(&ask.env);
        // Keeps a new process from starting before `replace` has invoked SessionStart hooks.
        guard.awaiting_hooks += 1;
    }
    let replaced = caught("restart", replace(handle, grace)).await;
    // Also after a panic: otherwise the agent would never get a process again.
    let mut guard = handle.lock().await;
    guard.awaiting_hooks -= 1;
    guard.reconcile();
    replaced.map_err(|Died| {
        let error = Error::new(Kind::Internal, "the restart was not completed");
        error.next("see the daemon's log, and try again")
    })
}

/// Ends the process and, when it has ended, invokes SessionStart hooks.
async fn replace(handle: &AgentHandle, grace: Duration) {
    let before = {
        let mut guard = handle.lock().await;
        guard.end_process();
        let before = guard.process.as_ref().and_then(|process| process.identity);
        // Set before the process ends, because the task that sees its end starts the next one.
        guard.wanted = true;
        guard.reconcile();
        before
    };
    if let Some(before) = before {
        let gone = handle.within(grace, |guard| {
            let now = guard.process.as_ref().and_then(|process| process.identity);
            (now != Some(before)).then_some(())
        });
        if gone.await.is_none() {
            kill(handle).await;
        }
    }
    let mut guard = handle.lock().await;
    observe::restarts(handle, "restart", 0);
    session::resumes(&mut guard, None).await;
}
