//! What an agent was at an earlier event. A message is made of it, and not of the agent's present state: it has the same
//! content whenever it is made.

use crate::daemon::{AgentHandle, Daemon};
use agentd_core::event::LimitKind;
use agentd_core::id::{AgentId, Seq};
use agentd_core::outbox::binding::Release;
use agentd_core::state::AgentState;
use agentd_store::{ReadQuery, Result, Texts};

const PAGE: usize = 200;

/// The name that an agent had at an event.
pub async fn name_at(handle: &AgentHandle, seq: Seq) -> Result<String> {
    {
        let guard = handle.lock().await;
        if guard.state.changes.last(Release::Rename) <= seq {
            return Ok(guard.state.name.clone());
        }
    }
    let state = state_at(&handle.daemon, handle.id, seq).await?;
    Ok(state.name)
}

/// The budgets of which an event used the last part of 80 %.
pub async fn reached_by(handle: &AgentHandle, seq: Seq) -> Result<Vec<LimitKind>> {
    let known = handle.lock().await.state.near_limits.reached_by(seq);
    if let Some(known) = known {
        return Ok(known);
    }
    let state = state_at(&handle.daemon, handle.id, seq).await?;
    Ok(state.near_limits.reached_by(seq).unwrap_or_default())
}

/// Folds the journal again, up to an event. It takes time in proportion to the journal.
async fn state_at(daemon: &Daemon, agent: AgentId, through: Seq) -> Result<AgentState> {
    let mut state = AgentState::new(agent);
    loop {
        let query = ReadQuery {
            texts: Texts::WithoutLong,
            ..ReadQuery::all(agent, state.head, PAGE)
        };
        let page = daemon.store.read(query).await?;
        if page.events.is_empty() {
            return Ok(state);
        }
        for event in &page.events {
            if event.seq > through {
                return Ok(state);
            }
            state.apply(event);
        }
    }
}
