//! Takes an agent out again that was put away.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::hooks::session;
use crate::problem::Result;
use agentd_client::{Kind, Problem};
use agentd_core::event::{AgentRestored, AgentStarted, Body};
use std::sync::Arc;

pub async fn restore(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let mut guard = desk.lock().await;
    if !guard.state.archived {
        return Ok(());
    }
    let current = guard.state.tree.current_conversation();
    if current.is_some_and(|current| current.purged) {
        let what = format!("nothing is left of `{}` to go on with", guard.state.name);
        return Err(Problem::new(Kind::Conflict, what).because("its words were purged"));
    }
    let bodies: [Body; 2] = [AgentRestored {}.into(), AgentStarted {}.into()];
    let events = guard.note(bodies).await?;
    let at = events.first().map(|event| event.seq);
    session::goes_on(daemon, desk, &mut guard, at);
    Ok(())
}
