//! Branch points, found by their label or turn.

use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use agentd_client::api::EndedTurn;
use agentd_core::branch_point::{self, BranchPoint, TurnName};
use agentd_core::event::{Body, Event};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::{AgentState, Conversation, Segment};
use agentd_core::window::Window;
use agentd_store::{ReadQuery, TurnQuery, Turns};

/// How many events after a branch point are read to find out whether the window must be loaded.
const LOOK: usize = 32;
/// How many turns of one conversation are listed.
const SHOWN: usize = 500;

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
    let Some(name) = TurnName::parse(called) else {
        return Err(nowhere(state, conversation, "no label", called));
    };
    let found = turn(daemon, state, conversation.id, name).await?;
    found.ok_or_else(|| nowhere(state, conversation, "no ended turn", called))
}

/// The end of a turn that the conversation shows.
async fn turn(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    name: TurnName,
) -> Result<Option<BranchPoint>> {
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    let mut before = 0;
    for segment in lineage.segments {
        let (which, total) = match name {
            TurnName::Id(id) => (Some(Turns::Id(id)), 0),
            TurnName::Number(number) => {
                let total = total(daemon, state, segment).await?;
                (nth(number, before, total), total)
            }
        };
        let ends = match which {
            Some(which) => ends(daemon, segment, which).await?,
            None => Vec::new(),
        };
        if let Some(event) = ends.first() {
            return Ok(Some(BranchPoint {
                conversation: segment.conversation,
                at: event.seq,
            }));
        }
        before += total;
    }
    Ok(None)
}

/// A turn of a segment by its number, counted from the nearer end. None if the turn is in another segment.
fn nth(number: usize, before: usize, total: usize) -> Option<Turns> {
    let n = number.checked_sub(before + 1).filter(|n| *n < total)?;
    let from_last = total - 1 - n;
    Some(match n <= from_last {
        true => Turns::Nth(n),
        false => Turns::NthLast(from_last),
    })
}

/// How many turns ended in a segment of a lineage. For a whole conversation the state has the number.
async fn total(daemon: &Daemon, state: &AgentState, segment: Segment) -> Result<usize> {
    let known = state.tree.get(segment.conversation);
    if let Some(known) = known.filter(|known| known.head <= segment.through) {
        return Ok(known.ended_turns as usize);
    }
    let (conversation, through) = (segment.conversation, segment.through);
    let counted = daemon
        .store
        .count_turn_ends(segment.agent, conversation, through);
    Ok(counted.await?)
}

async fn ends(daemon: &Daemon, segment: Segment, which: Turns) -> Result<Vec<Event>> {
    let query = TurnQuery {
        agent: segment.agent,
        conversation: segment.conversation,
        through: segment.through,
        which,
    };
    let ends = daemon.store.turn_ends(query).await;
    Ok(ends?)
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

/// The ended turns that a conversation shows, oldest first; of each segment the newest ones. Turns of another agent
/// from which it was forked are not included.
pub async fn ended_turns(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
) -> Result<Vec<EndedTurn>> {
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    let mut turns = Vec::new();
    let mut before = 0;
    for segment in lineage.segments {
        let total = total(daemon, state, segment).await?;
        let events = ends(daemon, segment, Turns::Newest(SHOWN)).await?;
        let first = before + total.saturating_sub(events.len()) + 1;
        for (number, event) in (first..).zip(events) {
            if let (Body::TurnEnded(ended), Some(id)) = (&event.body, event.turn) {
                turns.push(EndedTurn {
                    number,
                    id,
                    conversation: segment.conversation,
                    seq: event.seq,
                    ended_at: event.at,
                    status: ended.status,
                    compacts: ended.compacts,
                });
            }
        }
        before += total;
    }
    Ok(turns)
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
