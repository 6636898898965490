//! From now on the agent runs whenever there is something to do.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::Start;
use agentd_core::event::AgentStarted;
use std::sync::Arc;

pub async fn start(daemon: &Arc<Daemon>, desk: &Arc<Desk>, start: Start) -> Result<()> {
    let mut guard = desk.lock().await;
    daemon.supply(&mut guard, &start.env);
    guard.starts.forgive();
    if guard.state.stopped || guard.state.failed.is_some() {
        guard.note([AgentStarted {}.into()]).await?;
    }
    guard.wanted = true;
    daemon.mind(desk, &mut guard);
    Ok(())
}
