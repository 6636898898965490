//! Branch points, found by their label or turn.

use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::turns;
use agentd_core::branch_point::{self, BranchPoint, TurnName};
use agentd_core::id::ConversationId;
use agentd_core::state::{AgentState, Conversation};
use agentd_core::window::Window;
use agentd_store::ReadQuery;

/// How many events after a branch point are read to find out whether the window must be loaded.
const LOOK: usize = 32;

/// The branch point of a conversation with this name: a label, or a turn that has ended.
pub async fn find(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    called: &str,
) -> Result<BranchPoint> {
    let conversation = known(state, conversation)?;
    if let Some(place) = branch_point::labelled(state, conversation.id, called) {
        return Ok(place);
    }
    let found = turns::find(daemon, state, conversation.id, called).await?;
    let found = found.and_then(|turn| turn.end);
    found.ok_or_else(|| {
        let is_turn = TurnName::parse(called).is_some();
        let what = if is_turn { "no ended turn" } else { "no label" };
        nowhere(state, conversation, what, called)
    })
}

fn known(state: &AgentState, conversation: ConversationId) -> Result<&Conversation> {
    state.tree.get(conversation).ok_or_else(|| {
        let what = format!("`{}` has no conversation {conversation}", state.name);
        let next = format!(
            "`agentd conversations {}` lists its conversations",
            state.name
        );
        Error::new(Kind::NotFound, what).next(next)
    })
}

fn nowhere(state: &AgentState, conversation: &Conversation, what: &str, called: &str) -> Error {
    let (name, ordinal) = (&state.name, conversation.ordinal);
    let what = format!("{what} `{called}` in conversation {ordinal} of `{name}`");
    let next = format!("`agentd show {name} --conversation {ordinal}` shows labels and turns");
    Error::new(Kind::NotFound, what).next(next)
}

/// The window at a branch point, of which a branch needs only the open calls. Empty if it is certain that there are
/// none, because loading the window costs time in proportion to the conversation.
pub async fn seen(daemon: &Daemon, state: &AgentState, place: BranchPoint) -> Result<Window> {
    let query = ReadQuery {
        conversation: Some(place.conversation),
        ..ReadQuery::all(state.id, place.at, LOOK)
    };
    let page = daemon.store.read(query).await;
    let after = page?.events;
    if branch_point::is_between_turns(state, place, &after) {
        return Ok(Window::default());
    }
    let window = daemon.store.window(state.id, place.conversation, place.at);
    Ok(window.await?)
}
