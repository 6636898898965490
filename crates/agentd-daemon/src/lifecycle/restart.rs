//! A new process. The turn is left unfinished, and goes on in it.

use super::{GRACE, kill};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::hooks::{observe, session};
use crate::problem::Result;
use crate::supervisor::end_process;
use agentd_client::api::Restart;
use agentd_core::event::AgentStarted;
use std::sync::Arc;
use std::time::Duration;

pub async fn restart(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Restart) -> Result<()> {
    let grace = ask.grace_ms.map_or(GRACE, Duration::from_millis);
    let before = {
        let mut guard = desk.lock().await;
        guard.starts.forgive();
        if guard.state.stopped || guard.state.failed.is_some() {
            guard.note([AgentStarted {}.into()]).await?;
        }
        // They are told when the process is gone.
        guard.held += 1;
        end_process(&mut guard);
        let before = guard.process.as_ref().and_then(|process| process.identity);
        // Before it is gone: whoever sees it go starts the next one.
        guard.wanted = true;
        daemon.mind(desk, &mut guard);
        before
    };
    if let Some(before) = before {
        let gone = desk.within(grace, |guard| {
            let now = guard.process.as_ref().and_then(|process| process.identity);
            (now != Some(before)).then_some(())
        });
        if gone.await.is_none() {
            kill(desk).await;
        }
    }
    let mut guard = desk.lock().await;
    observe::restarts(daemon, desk, "restart", 0);
    session::goes_on(daemon, desk, &mut guard, None);
    guard.held -= 1;
    daemon.mind(desk, &mut guard);
    Ok(())
}
