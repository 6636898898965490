//! Replaces the agent's process. A turn in progress continues in the new process.

use super::ops::Asked;
use super::{GRACE, held, kill};
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::hooks::{observe, session};
use crate::problem::Result;
use crate::supervisor::end_process;
use agentd_client::api::Restart;
use agentd_core::event::{AgentStarted, Body};
use std::sync::Arc;
use std::time::Duration;

pub async fn restart(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    ask: Restart,
    asked: &Asked,
) -> Result<()> {
    let grace = ask.grace_ms.map_or(GRACE, Duration::from_millis);
    let before = {
        let mut guard = handle.lock().await;
        held::check_released(&guard.state)?;
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
        daemon.merge_env(&mut guard, &ask.env);
        // SessionStart hooks are invoked below, when the old process has ended: no process may start before.
        guard.awaiting_hooks += 1;
        end_process(&mut guard);
        let before = guard.process.as_ref().and_then(|process| process.identity);
        // Before the process ends, because the task that sees its end starts the next one.
        guard.wanted = true;
        daemon.reconcile(handle, &mut guard);
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
    observe::restarts(daemon, handle, "restart", 0);
    session::resumes(daemon, handle, &mut guard, None);
    guard.awaiting_hooks -= 1;
    daemon.reconcile(handle, &mut guard);
    Ok(())
}
