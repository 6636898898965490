//! The agents from which an agent was forked: the history of its files begins with theirs, up to the branch points.

use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::lifecycle::fork::forked_from;
use crate::turns;
use agentd_core::branch_point::labelled;
use agentd_core::event::{Origin, Position};
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::state::{AgentState, Segment};

/// How many forks of forks are followed.
const MOST: usize = 100;

/// An agent from which this one was forked, directly or not.
pub struct Ancestor {
    pub state: Box<AgentState>,
    /// The last event that is shared.
    pub from: Origin,
}

/// The nearest first.
pub async fn ancestors(handle: &AgentHandle, state: &AgentState) -> Result<Vec<Ancestor>> {
    let mut all: Vec<Ancestor> = Vec::new();
    let mut origin = forked_from(state);
    while let Some(from) = origin {
        let is_known = |it: &Ancestor| it.from.agent == from.agent;
        // Forks cannot form a cycle; a forged journal must not cause an endless loop.
        if from.agent == state.id || all.iter().any(is_known) || all.len() == MOST {
            break;
        }
        let state = state_of(handle, from.agent).await?;
        origin = forked_from(&state);
        all.push(Ancestor { state, from });
    }
    Ok(all)
}

/// An ancestor may be stored only because a fork needs its events: then it is no agent that can be used.
async fn state_of(handle: &AgentHandle, agent: AgentId) -> Result<Box<AgentState>> {
    let daemon = &handle.daemon;
    if daemon.store.is_listed(agent).await?
        && let Some(parent) = daemon.existing(agent).await?
    {
        return Ok(Box::new(parent.lock().await.state.clone()));
    }
    let loaded = daemon.store.load(agent).await?;
    Ok(Box::new(loaded.state))
}

/// A turn that the agent shares with one that it was forked from, by its id or the beginning of it, and where it ended.
/// Numbers count the agent's own turns.
pub async fn turn(
    handle: &AgentHandle,
    ancestors: &[Ancestor],
    called: &str,
) -> Result<Option<(TurnId, Position)>> {
    for Ancestor { state, from } in ancestors {
        let found = turns::find_id(&handle.daemon, state, from.conversation, called).await?;
        let Some(found) = found else { continue };
        if let Some(end) = found.end.filter(|end| end.at <= from.seq) {
            return Ok(Some((found.id, position(from.agent, end.at))));
        }
    }
    Ok(None)
}

/// A position that the agent shares with one that it was forked from: a label, or the end of a turn.
pub async fn find(
    handle: &AgentHandle,
    ancestors: &[Ancestor],
    called: &str,
) -> Result<Option<Position>> {
    for Ancestor { state, from } in ancestors {
        let label = labelled(state, from.conversation, called);
        if let Some(label) = label.filter(|label| label.at <= from.seq) {
            return Ok(Some(position(from.agent, label.at)));
        }
    }
    let turn = turn(handle, ancestors, called).await?;
    Ok(turn.map(|(_, end)| end))
}

/// The conversations whose content a conversation shows, also in other journals.
pub fn segments(
    state: &AgentState,
    conversation: ConversationId,
    ancestors: &[Ancestor],
) -> Vec<Segment> {
    let own = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    let mut segments = own.segments;
    let mut beyond = own.beyond;
    for ancestor in ancestors {
        let Some(from) = beyond.filter(|from| from.agent == ancestor.from.agent) else {
            break;
        };
        let tree = &ancestor.state.tree;
        let older = tree.lineage(from.agent, from.conversation, from.seq);
        segments.extend(older.segments);
        beyond = older.beyond;
    }
    segments
}

const fn position(agent: AgentId, seq: Seq) -> Position {
    Position { agent, seq }
}
