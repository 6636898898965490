//! The title of a conversation: the last one that a hook set, or the beginning of the first prompt. Read on demand.

use crate::daemon::Daemon;
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_core::title;
use agentd_store::ReadQuery;

/// How many of the newest hook answers are searched for a title.
const ANSWERS: usize = 16;
/// How many of a conversation's first events are searched for the first prompt.
const LOOK: usize = 32;

pub async fn of(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
) -> Option<String> {
    for at in state.hooks.words_of(conversation).take(ANSWERS) {
        let query = ReadQuery::all(state.id, Seq(at.0.saturating_sub(1)), 1);
        let events = daemon.store.read(query).await.ok()?.events;
        if let Some(title) = title::of_hooks(&events) {
            return Some(title);
        }
    }
    // A branch begins with the text of the conversation that it branched off.
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    for segment in lineage.segments {
        let known = state.tree.get(segment.conversation)?;
        let query = ReadQuery {
            conversation: Some(known.id),
            ..ReadQuery::all(state.id, Seq(known.began.0.saturating_sub(1)), LOOK)
        };
        let mut events = daemon.store.read(query).await.ok()?.events;
        events.retain(|event| event.seq <= segment.through);
        if let Some(title) = title::of_events(&events) {
            return Some(title);
        }
    }
    None
}
