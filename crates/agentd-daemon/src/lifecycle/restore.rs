//! Restores an archived agent, under its own name or another one.

use super::ops::Asked;
use crate::agent_name;
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use agentd_client::api::Restore;
use agentd_core::event::{AgentRenamed, AgentRestored, AgentStarted, Body};

pub async fn restore(handle: &AgentHandle, ask: Restore, asked: &Asked) -> Result<()> {
    let name = ask.name.as_deref().map(agent_name::checked).transpose()?;
    let mut guard = handle.lock().await;
    if asked.is_made(&guard.state)? || !guard.state.archived {
        return Ok(());
    }
    let current = guard.state.tree.current_conversation();
    if current.is_some_and(|current| current.purged) {
        let what = format!("`{}` cannot be restored", guard.state.name);
        return Err(Error::new(Kind::Conflict, what).because("its conversation was purged"));
    }
    let renamed = name.filter(|name| *name != guard.state.name);
    let renamed = renamed.map(|name| Body::from(AgentRenamed { name }));
    // A held agent stays held.
    let started = (!guard.state.is_held()).then(|| Body::from(AgentStarted {}));
    let restored = [Body::from(AgentRestored {})].into_iter().chain(started);
    let bodies = renamed.into_iter().chain(restored).chain(asked.line());
    let events = guard.note(bodies).await?;
    let at = events.first().map(|event| event.seq);
    session::resumes(&mut guard, at).await;
    // Prompts that were queued before it was archived.
    guard.reconcile();
    Ok(())
}
