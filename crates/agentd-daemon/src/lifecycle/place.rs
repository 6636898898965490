//! Places that a conversation can begin from: found by what people call them.

use crate::daemon::Daemon;
use crate::problem::{Result, of_store};
use agentd_client::api::EndedTurn;
use agentd_client::{Kind, Problem};
use agentd_core::event::Body;
use agentd_core::id::{ConversationId, Seq};
use agentd_core::place::{self, Place, TurnName};
use agentd_core::state::{AgentState, Conversation};
use agentd_core::window::Window;
use agentd_store::ReadQuery;

/// Events behind a place that are looked at before the whole window is.
const LOOK: usize = 32;

/// The place that is called so in a conversation: by a label, or by a turn that has ended.
pub async fn find(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    called: &str,
) -> Result<Place> {
    let conversation = known(state, conversation)?;
    if let Some(place) = place::labelled(state, conversation.id, called) {
        return Ok(place);
    }
    let Some(name) = TurnName::parse(called) else {
        return Err(nowhere(state, conversation, "no label", called));
    };
    let ended = ended_turns(daemon, state, conversation.id).await?;
    let found = ended.iter().find(|turn| match name {
        TurnName::Id(id) => turn.id == id,
        TurnName::Number(number) => turn.number == number,
    });
    let found = found.ok_or_else(|| nowhere(state, conversation, "no turn that ended", called))?;
    Ok(Place {
        conversation: found.conversation,
        at: found.at,
    })
}

fn known(state: &AgentState, conversation: ConversationId) -> Result<&Conversation> {
    state.tree.get(conversation).ok_or_else(|| {
        let what = format!("`{}` has no conversation {conversation}", state.name);
        let next = format!("`agentd conversations {}` shows those it has", state.name);
        Problem::new(Kind::NotFound, what).next(next)
    })
}

fn nowhere(state: &AgentState, conversation: &Conversation, what: &str, called: &str) -> Problem {
    let (name, ordinal) = (&state.name, conversation.ordinal);
    let what = format!("{what} `{called}` in conversation {ordinal} of `{name}`");
    let next = format!("`agentd show {name} --conversation {ordinal}` shows labels and turns");
    Problem::new(Kind::NotFound, what).next(next)
}

/// The turns that a conversation shows and that are over, oldest first; those of another agent, which it
/// was forked from, are not among them.
pub async fn ended_turns(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
) -> Result<Vec<EndedTurn>> {
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    let mut turns = Vec::new();
    for segment in lineage.segments {
        let (conversation, through) = (segment.conversation, segment.through);
        let ends = daemon.store.turn_ends(state.id, conversation, through);
        for event in ends.await.map_err(|error| of_store(&error))? {
            if let (Body::TurnEnded(ended), Some(id)) = (&event.body, event.turn)
                && !ended.compacts
            {
                turns.push(EndedTurn {
                    number: turns.len() + 1,
                    id,
                    conversation,
                    at: event.seq,
                    ended_at: event.at,
                    status: ended.status,
                });
            }
        }
    }
    Ok(turns)
}

/// What the model saw up to a place, as far as a branch needs it: nothing, where no call is open. The whole
/// of it costs what the conversation has grown to.
pub async fn seen(daemon: &Daemon, state: &AgentState, place: Place) -> Result<Window> {
    let query = ReadQuery {
        conversation: Some(place.conversation),
        ..ReadQuery::all(state.id, place.at, LOOK)
    };
    let page = daemon.store.read(query).await;
    let after = page.map_err(|error| of_store(&error))?.events;
    if place::is_between_turns(state, place, &after) {
        return Ok(Window::default());
    }
    let window = daemon.store.window(state.id, place.conversation, place.at);
    window.await.map_err(|error| of_store(&error))
}
