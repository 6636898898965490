//! Restores an archived agent, under its own name or another one.

use super::ops::Asked;
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::hooks::session;
use crate::lifecycle::create::checked_name;
use crate::problem::Result;
use agentd_client::api::Restore;
use agentd_client::{Kind, Problem};
use agentd_core::event::{AgentRenamed, AgentRestored, AgentStarted, Body};
use std::sync::Arc;

pub async fn restore(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    ask: Restore,
    asked: &Asked,
) -> Result<()> {
    let name = ask.name.as_deref().map(checked_name).transpose()?;
    let mut guard = handle.lock().await;
    if asked.is_made(&guard.state)? || !guard.state.archived {
        return Ok(());
    }
    let current = guard.state.tree.current_conversation();
    if current.is_some_and(|current| current.purged) {
        let what = format!("`{}` cannot be restored", guard.state.name);
        return Err(Problem::new(Kind::Conflict, what).because("its conversation was purged"));
    }
    let renamed = name.filter(|name| *name != guard.state.name);
    let renamed = renamed.map(|name| Body::from(AgentRenamed { name }));
    // A held agent stays held.
    let started = (!guard.state.is_held()).then(|| Body::from(AgentStarted {}));
    let restored = [Body::from(AgentRestored {})].into_iter().chain(started);
    let bodies = renamed.into_iter().chain(restored).chain(asked.line());
    let events = guard.note(bodies).await?;
    let at = events.first().map(|event| event.seq);
    session::resumes(daemon, handle, &mut guard, at);
    Ok(())
}
