//! The parts of a window: the conversations that it includes, across agents.

use super::Journals;
use crate::error::{Error, Result};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::{AgentState, Segment};

/// How many agents a conversation may reach through, by forks.
const MAX_FORKS: usize = 1000;

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
        if steps == MAX_FORKS {
            return Err(Error::TooManyForks { limit: MAX_FORKS });
        }
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
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::super::journals::Branch;
    use super::*;
    use crate::damage::Damage;
    use agentd_core::event::{
        AgentCreated, BeginSource, Body, ConversationBegan, Mode, NewEvent, Origin, placed,
    };
    use agentd_core::id::AgentId;
    use agentd_core::time::Timestamp;

    /// Agents, each of which is a fork of the one with the next lower number.
    struct Chain;

    fn agent(n: u128) -> AgentId {
        AgentId::from_bytes(n.to_be_bytes())
    }

    fn conversation(n: u128) -> ConversationId {
        ConversationId::from_bytes(n.to_be_bytes())
    }

    fn state(n: u128) -> AgentState {
        let name = format!("agent-{n}");
        let mode = Mode::Persistent;
        let from = (n > 0).then(|| Origin {
            agent: agent(n - 1),
            conversation: conversation(n - 1),
            seq: Seq(2),
        });
        let began = ConversationBegan {
            source: BeginSource::Fork,
            parent: None,
            from,
            op: None,
        };
        let bodies: [Body; 2] = [AgentCreated { name, mode }.into(), began.into()];
        let events = bodies.map(|body| NewEvent {
            at: Timestamp(0),
            conversation: conversation(n),
            turn: None,
            body,
        });
        let mut state = AgentState::new(agent(n));
        for event in placed(events.to_vec(), agent(n), Seq(1)) {
            state.apply(&event);
        }
        state
    }

    impl Journals for Chain {
        fn state(&self, agent: AgentId) -> Result<(AgentState, Option<Damage>)> {
            Ok((state(u128::from_be_bytes(*agent.as_bytes())), None))
        }

        fn is_listed(&self, _: AgentId) -> Result<bool> {
            Ok(true)
        }

        fn branches_of(&self, _: AgentId, _: ConversationId) -> Result<Vec<Branch>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_chain_of_forks_that_is_too_long_is_an_error_and_not_cut() {
        let of = |n: usize| {
            let n = n as u128;
            lineage(&Chain, &state(n), conversation(n), Seq(2))
        };
        assert_eq!(of(MAX_FORKS).unwrap().len(), MAX_FORKS + 1);
        let refused = of(MAX_FORKS + 1).map(|parts| parts.len());
        assert!(
            matches!(refused, Err(Error::TooManyForks { limit: MAX_FORKS })),
            "{refused:?}"
        );
    }
}
