//! A conversation as the API shows it.

use crate::daemon::Daemon;
use crate::title;
use crate::view::usage;
use agentd_client::api::{AgentRef, Conversation, Origin};
use agentd_core::event;
use agentd_core::id::AgentId;
use agentd_core::state::{self, AgentState};
use std::sync::Arc;

/// Whether the title is looked up, which reads the beginning of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    LookUp,
    LeaveOut,
}

/// `state` is a copy, so that no agent is locked while another agent's name is looked up.
pub async fn conversation(
    daemon: &Arc<Daemon>,
    state: &AgentState,
    known: &state::Conversation,
    with: Title,
) -> Conversation {
    let title = match with {
        Title::LookUp => title::of(daemon, state, known.id).await,
        Title::LeaveOut => None,
    };
    let from = match known.from {
        Some(from) => Some(origin(daemon, from, Some(state)).await),
        None => None,
    };
    Conversation {
        id: known.id,
        ordinal: known.ordinal,
        parent: known.parent,
        from,
        source: known.source,
        began: known.began,
        began_at: known.began_at,
        head: known.head,
        sealed: known.sealed,
        current: state.tree.current() == Some(known.id),
        title,
        turns: known.turns,
        ended_turns: known.ended_turns,
        compactions: known.compactions,
        context_tokens: known.context_tokens,
        usage: usage(&known.spent),
        labels: known.labels.clone(),
        purged: known.purged,
        last_request: known.last_request.clone(),
    }
}

/// A branch point, with the name of its agent; `own` is the agent that is shown, if any.
pub async fn origin(daemon: &Arc<Daemon>, from: event::Origin, own: Option<&AgentState>) -> Origin {
    let own_name = |id: AgentId| own.filter(|own| own.id == id).map(|own| own.name.clone());
    let agent = match own_name(from.agent) {
        Some(name) => AgentRef {
            id: from.agent,
            name: Some(name),
        },
        None => daemon.reference(from.agent).await,
    };
    Origin {
        agent,
        conversation: from.conversation,
        seq: from.seq,
    }
}
