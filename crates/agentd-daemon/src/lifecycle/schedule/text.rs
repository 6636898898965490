//! The texts of schedules. They are content events, and belong to the conversation in which they were recorded.

use crate::daemon::AgentGuard;
use crate::error::Result;
use agentd_core::event::{Body, ScheduleMoved, SchedulePrompt};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::message::Block;
use agentd_core::state::{AgentState, Schedule};
use agentd_store::{ReadQuery, Store};

/// The prompt of a schedule; none if it has none, or if it was purged.
pub async fn of(guard: &AgentGuard<'_>, schedule: &Schedule) -> Result<Option<Vec<Block>>> {
    let store = &*guard.handle.daemon.store;
    Ok(read(store, guard.state.id, schedule).await?)
}

async fn read(
    store: &dyn Store,
    agent: AgentId,
    schedule: &Schedule,
) -> agentd_store::Result<Option<Vec<Block>>> {
    if !schedule.action.has_prompt() {
        return Ok(None);
    }
    let page = store.read(ReadQuery::all(agent, schedule.seq, 1)).await?;
    Ok(page.events.into_iter().find_map(|event| match event.body {
        Body::SchedulePrompt(prompt) if prompt.schedule == schedule.id => Some(prompt.blocks),
        _ => None,
    }))
}

/// Records the prompts of schedules again in the current conversation, before the conversations with the earlier records
/// are purged.
pub async fn carry(guard: &mut AgentGuard<'_>, purged: &[ConversationId]) -> Result<()> {
    let carried = carried(&*guard.handle.daemon.store, &guard.state, purged).await?;
    for bodies in carried {
        guard.note(bodies).await?;
    }
    Ok(())
}

/// The events for that, one commit for each schedule. The schedules of an archived agent lose their prompts with its
/// conversations, and are gone then.
pub async fn carried(
    store: &dyn Store,
    state: &AgentState,
    purged: &[ConversationId],
) -> agentd_store::Result<Vec<[Body; 2]>> {
    let current = state.tree.current();
    if state.archived || current.is_none_or(|current| purged.contains(&current)) {
        return Ok(Vec::new());
    }
    let affected = state.schedules.iter();
    let affected = affected.filter(|known| purged.contains(&known.conversation));
    let mut carried = Vec::new();
    for known in affected {
        let schedule = known.id;
        if let Some(blocks) = read(store, state.id, known).await? {
            carried.push([
                ScheduleMoved { schedule }.into(),
                SchedulePrompt { schedule, blocks }.into(),
            ]);
        }
    }
    Ok(carried)
}
