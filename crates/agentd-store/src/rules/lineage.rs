//! The parts of a window: the conversations that it includes, across agents.

use super::Journals;
use crate::error::{Error, Result};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::{AgentState, Segment};

/// The part of a window that comes from one conversation.
pub struct Part {
    pub segment: Segment,
    /// The first event of the conversation.
    pub began: Seq,
}

/// All parts, across agents, oldest first.
pub fn lineage(
    journals: &impl Journals,
    state: &AgentState,
    conversation: ConversationId,
    through: Seq,
) -> Result<Vec<Part>> {
    let parts_of = |state: &AgentState, segments: Vec<Segment>| -> Vec<Part> {
        let began = |id| state.tree.get(id).map_or(Seq::ZERO, |known| known.began);
        let part = |segment: Segment| Part {
            segment,
            began: began(segment.conversation),
        };
        segments.into_iter().map(part).collect()
    };
    let own = state.tree.lineage(state.id, conversation, through);
    let mut parts = parts_of(state, own.segments);
    let mut beyond = own.beyond;
    // Each step leads to the agent from which a fork was made. The limit is a safeguard: forks cannot form a cycle.
    let mut steps = 0;
    while let Some(origin) = beyond.take() {
        let (parent, damage) = journals.state(origin.agent)?;
        if let Some(damage) = damage.filter(|damage| damage.from <= origin.seq) {
            return Err(Error::of_damage(origin.agent, &damage));
        }
        let older = parent
            .tree
            .lineage(origin.agent, origin.conversation, origin.seq);
        let newer = std::mem::replace(&mut parts, parts_of(&parent, older.segments));
        parts.extend(newer);
        beyond = older.beyond;
        steps += 1;
        if steps > 1000 {
            break;
        }
    }
    Ok(parts)
}
