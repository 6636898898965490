//! Schedules with their texts, as the API shows them.

use super::text;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::Result;
use crate::{prompt, view};
use agentd_client::api::{Schedule, Schedules};
use agentd_core::state;
use std::sync::Arc;

/// The schedules of an agent.
pub async fn list(handle: &AgentHandle) -> Result<Schedules> {
    let guard = handle.lock().await;
    let mut schedules = Vec::new();
    for known in guard.state.schedules.iter() {
        schedules.push(with_text(&guard, known).await);
    }
    Ok(Schedules { schedules })
}

/// The schedules of all agents, by name of the agent. Archived agents are left out.
pub async fn list_all(daemon: &Arc<Daemon>) -> Result<Schedules> {
    let mut all = Schedules::default();
    for agent in daemon.store.with_schedules().await? {
        let handle = daemon.handle(agent).await?;
        let is_archived = handle.lock().await.state.archived;
        if !is_archived {
            all.schedules.extend(list(&handle).await?.schedules);
        }
    }
    // Stable: the schedules of an agent stay in their order.
    all.schedules
        .sort_by(|a, b| a.agent.name.cmp(&b.agent.name));
    Ok(all)
}

/// A schedule with its prompt. A prompt that cannot be read is left out.
pub async fn with_text(guard: &AgentGuard<'_>, known: &state::Schedule) -> Schedule {
    let text = text::of(guard, known).await.ok().flatten();
    Schedule {
        prompt: text.map(|blocks| prompt::text_of(&blocks)),
        ..view::schedules::one(&guard.state, known)
    }
}
