//! Stops every agent of a restored home: none continues a turn before the user starts it. The original may still be in use.

use crate::backup::Result;
use crate::clock;
use agentd_core::event::{AgentStopped, Body, Mode, NewEvent};
use agentd_core::id::AgentId;
use agentd_core::state::{AgentState, Hold, Phase};
use agentd_store::{AgentQuery, AgentSort, Append, Store};

const PAGE: usize = 200;
/// The owner of an agent's journal while its home is restored.
pub const OWNER: &str = "restore-backup";

/// Returns how many were not stopped before.
pub async fn stop_all(store: &dyn Store) -> Result<u64> {
    let mut stopped = 0;
    for agent in all(store).await? {
        let state = store.load(agent).await?.state;
        if !is_to_stop(&state) {
            continue;
        }
        let Some(conversation) = state.tree.current() else {
            continue;
        };
        let fence = store.claim(agent, OWNER).await?.fence;
        let event = NewEvent {
            at: clock::now(),
            conversation,
            turn: None,
            body: Body::from(AgentStopped {}),
        };
        store.append(Append::new(fence, vec![event])).await?;
        stopped += 1;
    }
    Ok(stopped)
}

/// A held agent does not run, and a one-shot agent that has finished has nothing left to do.
fn is_to_stop(state: &AgentState) -> bool {
    let is_over =
        state.mode == Mode::Oneshot && matches!(state.phase(), Phase::Idle | Phase::Failed);
    let is_stopped = state.stopped && state.hold == Hold::No;
    !is_stopped && !state.is_held() && !state.archived && !is_over
}

async fn all(store: &dyn Store) -> Result<Vec<AgentId>> {
    let (mut agents, mut after) = (Vec::new(), None);
    loop {
        let query = AgentQuery {
            sort: AgentSort::Name,
            limit: PAGE,
            after,
            ..AgentQuery::default()
        };
        let page = store.agents(query).await?;
        agents.extend(page.agents.into_iter().map(|agent| agent.id));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(agents),
        }
    }
}
