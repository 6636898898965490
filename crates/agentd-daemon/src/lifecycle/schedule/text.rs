//! The texts of schedules. They are content events, and belong to the conversation in which they were recorded.

use crate::daemon::AgentGuard;
use crate::error::Result;
use agentd_core::event::{Body, ScheduleMoved, SchedulePrompt};
use agentd_core::id::ConversationId;
use agentd_core::message::Block;
use agentd_core::state::Schedule;
use agentd_store::ReadQuery;

/// The prompt of a schedule; none if it has none, or if it was purged.
pub async fn of(guard: &AgentGuard<'_>, schedule: &Schedule) -> Result<Option<Vec<Block>>> {
    if !schedule.action.has_prompt() {
        return Ok(None);
    }
    let query = ReadQuery::all(guard.state.id, schedule.seq, 1);
    let page = guard.handle.daemon.store.read(query).await?;
    Ok(page.events.into_iter().find_map(|event| match event.body {
        Body::SchedulePrompt(prompt) if prompt.schedule == schedule.id => Some(prompt.blocks),
        _ => None,
    }))
}

/// Records the prompts of schedules again in the current conversation, before the conversations with the earlier records
/// are purged. The schedules of an archived agent lose their prompts with its conversations, and are gone then.
pub async fn carry(guard: &mut AgentGuard<'_>, purged: &[ConversationId]) -> Result<()> {
    let current = guard.state.tree.current();
    if guard.state.archived || current.is_none_or(|current| purged.contains(&current)) {
        return Ok(());
    }
    let affected = guard.state.schedules.iter();
    let affected = affected.filter(|known| purged.contains(&known.conversation));
    let affected: Vec<Schedule> = affected.cloned().collect();
    for known in affected {
        let schedule = known.id;
        if let Some(blocks) = of(guard, &known).await? {
            let bodies: [Body; 2] = [
                ScheduleMoved { schedule }.into(),
                SchedulePrompt { schedule, blocks }.into(),
            ];
            guard.note(bodies).await?;
        }
    }
    Ok(())
}
