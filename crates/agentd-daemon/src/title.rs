//! What a conversation is called: the words it begins with, read when somebody looks.

use crate::daemon::Daemon;
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_core::title;
use agentd_store::ReadQuery;

/// The first prompt is among the first so many events of a conversation.
const LOOK: usize = 32;

pub async fn of(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
) -> Option<String> {
    // A branch begins with the words of what it branched off.
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
