//! What may be purged, the event that records a purge, and the draft that a purge keeps.

use super::Journals;
use crate::error::{Error, Result};
use agentd_core::event::{NewEvent, Purged};
use agentd_core::id::{AgentId, ConversationId, TryId};
use agentd_core::state::{AgentState, Conversation};
use agentd_core::time::Timestamp;

/// The conversation, if it may be purged.
pub fn purgeable<'a>(
    journals: &impl Journals,
    state: &'a AgentState,
    conversation: ConversationId,
) -> Result<&'a Conversation> {
    purgeable_with(journals, state, conversation, &[])
}

/// The same, on the assumption that the conversations `with` of the same agent are purged too.
pub fn purgeable_with<'a>(
    journals: &impl Journals,
    state: &'a AgentState,
    conversation: ConversationId,
    with: &[ConversationId],
) -> Result<&'a Conversation> {
    let Some(found) = state.tree.get(conversation) else {
        return Err(Error::NoSuchConversation {
            agent: state.id,
            conversation,
        });
    };
    // First: the caller can archive the agent, but the branches need the conversation nevertheless.
    let by = needed_by(journals, state.id, conversation, with)?;
    if !by.is_empty() {
        return Err(Error::PurgeNeeded { conversation, by });
    }
    // An archived agent does not continue its current conversation.
    if state.tree.current() == Some(conversation) && !state.archived {
        return Err(Error::PurgeCurrent { conversation });
    }
    Ok(found)
}

/// The branches of this conversation that have not been purged, each with the name of its agent.
fn needed_by(
    journals: &impl Journals,
    agent: AgentId,
    conversation: ConversationId,
    with: &[ConversationId],
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for branch in journals.branches_of(agent, conversation)? {
        let id = branch.conversation;
        if branch.agent == agent && with.contains(&id) {
            continue;
        }
        let (state, _) = journals.state(branch.agent)?;
        if state.tree.get(id).is_some_and(|known| !known.purged) {
            names.push(format!("`{}` (conversation {id})", branch.name));
        }
    }
    Ok(names)
}

/// What a purge of a conversation deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loses {
    /// The number of events that lose their text.
    pub events: u64,
    /// What they count towards `limits.file_history_bytes`.
    pub kept_bytes: u64,
}

/// The event that records a purge.
pub fn record(
    state: &AgentState,
    conversation: ConversationId,
    loses: Loses,
    at: Timestamp,
) -> NewEvent {
    NewEvent {
        at,
        conversation: state.tree.current().unwrap_or(conversation),
        turn: None,
        body: Purged {
            kept_bytes: loses.kept_bytes,
            ..Purged::conversation(conversation, loses.events)
        }
        .into(),
    }
}

/// The try that is streaming: a purge keeps its draft. Any other draft belongs to a try that has ended, perhaps in the
/// purged conversation.
pub fn streaming(state: &AgentState) -> Option<TryId> {
    let in_flight = state.turn.as_ref()?.in_flight?;
    Some(in_flight.request)
}
