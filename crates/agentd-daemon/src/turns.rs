//! The turns of an agent as users see them: their numbers, their first words, and how one is found.

mod files;
mod words;

use crate::daemon::Daemon;
use crate::error::Result;
use crate::id_prefix;
use agentd_client::api::{self, EndedTurn};
use agentd_core::branch_point::{BranchPoint, TurnName};
use agentd_core::event::{Body, Event, Kind};
use agentd_core::id::{ConversationId, IdPrefix, Seq, TurnId};
use agentd_core::state::{AgentState, Segment};
use agentd_store::{ReadQuery, Texts, TurnQuery, Turns};

/// Turns of one conversation that are listed.
const SHOWN: usize = 500;
/// Of these the newest, whose first words are looked up.
const WITH_WORDS: usize = 100;
/// Events about prompts, after a prompt, in which the turn is searched for that answers it.
const AHEAD: usize = 500;
/// The kinds of these events.
const ABOUT_PROMPTS: &[Kind] = &[
    Kind::Prompt,
    Kind::PromptsTaken,
    Kind::PromptsRemoved,
    Kind::PromptBlocked,
];

/// A turn, and where it ended, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub id: TurnId,
    pub end: Option<BranchPoint>,
}

/// A turn, by one of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    pub id: TurnId,
    pub seq: Seq,
}

/// A turn by its number among those that the conversation shows, by its id, or by the beginning of its id. None if
/// there is no such turn; turns that the conversation does not show have no end here.
pub async fn find(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    given: &str,
) -> Result<Option<Found>> {
    if let Some(TurnName::Number(number)) = TurnName::parse(given)
        && let Some(found) = numbered(daemon, state, conversation, number).await?
    {
        return Ok(Some(found));
    }
    find_id(daemon, state, conversation, given).await
}

/// A turn by its id, or by the beginning of its id.
pub async fn find_id(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    given: &str,
) -> Result<Option<Found>> {
    let Ok(prefix) = given.parse::<IdPrefix>() else {
        return Ok(None);
    };
    let Some(id) = by_prefix(daemon, state, &prefix).await? else {
        return Ok(None);
    };
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    for segment in lineage.segments {
        let ends = ends(daemon, segment, Turns::Id(id)).await?;
        if let Some(event) = ends.first() {
            let end = Some(end(segment, event));
            return Ok(Some(Found { id, end }));
        }
    }
    Ok(Some(Found { id, end: None }))
}

async fn by_prefix(
    daemon: &Daemon,
    state: &AgentState,
    prefix: &IdPrefix,
) -> Result<Option<TurnId>> {
    let range = prefix.range();
    let ids = TurnId::new(*range.start())..=TurnId::new(*range.end());
    let ended = daemon
        .store
        .turns_between(state.id, ids, id_prefix::LISTED + 1);
    let running = state.turn.as_ref().map(|turn| turn.id);
    id_prefix::only(prefix, "turn", ended.await?.into_iter().chain(running))
}

/// The running turn has the number after the last one that ended.
async fn numbered(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    number: usize,
) -> Result<Option<Found>> {
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    let mut before = 0;
    for segment in lineage.segments {
        let total = total(daemon, state, segment).await?;
        let ends = match nth(number, before, total) {
            Some(which) => ends(daemon, segment, which).await?,
            None => Vec::new(),
        };
        if let Some((event, id)) = ends.first().and_then(|event| Some((event, event.turn?))) {
            let end = Some(end(segment, event));
            return Ok(Some(Found { id, end }));
        }
        before += total;
    }
    let running = state.turn.as_ref();
    let running = running.filter(|turn| turn.conversation == conversation && number == before + 1);
    Ok(running.map(|turn| Found {
        id: turn.id,
        end: None,
    }))
}

const fn end(segment: Segment, event: &Event) -> BranchPoint {
    BranchPoint {
        conversation: segment.conversation,
        at: event.seq,
    }
}

/// Counts from the nearer end. None if the turn is in another segment.
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

/// The ended turns that a conversation shows, oldest first; of each segment the newest ones. Turns of another agent
/// from which it was forked are not included.
pub async fn ended(
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
                    prompt: None,
                    files: None,
                    files_unknown: false,
                });
            }
        }
        before += total;
    }
    let without_words = turns.len().saturating_sub(WITH_WORDS);
    let first = turns.get(without_words).map(|turn| turn.id);
    if let Some(first) = first {
        let counts = files::counts(daemon, state, first).await?;
        for turn in turns.iter_mut().skip(without_words) {
            turn.files = Some(counts.files.get(&turn.id).copied().unwrap_or(0));
            turn.files_unknown = counts.unknown.contains(&turn.id);
        }
    }
    let before = without_words.checked_sub(1).and_then(|n| turns.get(n));
    let before = before.map_or(Seq::ZERO, |turn| turn.seq);
    if let Some(turns) = turns.get_mut(without_words..) {
        words::add(daemon, state.id, turns, before).await?;
    }
    Ok(turns)
}

/// The turn that an event belongs to. A prompt belongs to the turn that answers it.
pub async fn of_event(daemon: &Daemon, event: &Event) -> Result<Option<Within>> {
    let seq = event.seq;
    if let Some(id) = event.turn {
        return Ok(Some(Within { id, seq }));
    }
    let Body::Prompt(said) = &event.body else {
        return Ok(None);
    };
    let query = ReadQuery {
        conversation: Some(event.conversation),
        kinds: ABOUT_PROMPTS,
        texts: Texts::WithoutLong,
        ..ReadQuery::all(event.agent, seq, AHEAD)
    };
    let after = daemon.store.read(query).await?.events;
    // A text that was replaced or removed belongs to no turn.
    let gone = after.iter().position(|event| match &event.body {
        Body::Prompt(other) => other.prompt == said.prompt,
        Body::PromptsRemoved(removed) => removed.prompts.contains(&said.prompt),
        _ => false,
    });
    let after = after.get(..gone.unwrap_or(after.len())).unwrap_or_default();
    let mut taken = after.iter().filter(|event| match &event.body {
        Body::PromptsTaken(taken) => taken.prompts.contains(&said.prompt),
        Body::PromptBlocked(blocked) => blocked.prompt == said.prompt,
        _ => false,
    });
    let taken = taken.find_map(|event| Some((event.turn?, event.seq)));
    Ok(taken.map(|(id, seq)| Within { id, seq }))
}

/// The number of a turn among those that its conversation shows.
pub async fn number(
    daemon: &Daemon,
    state: &AgentState,
    conversation: ConversationId,
    turn: Within,
) -> Result<Option<usize>> {
    if state.tree.get(conversation).is_none() {
        return Ok(None);
    }
    let before = Seq(turn.seq.0.saturating_sub(1));
    let lineage = state.tree.lineage(state.id, conversation, before);
    let mut number = 1;
    for segment in lineage.segments {
        number += total(daemon, state, segment).await?;
    }
    Ok(Some(number))
}

/// A turn as the API shows it.
pub async fn view(daemon: &Daemon, state: &AgentState, found: Found) -> Result<api::Turn> {
    let id = found.id;
    let running = state.turn.as_ref().filter(|turn| turn.id == id);
    let running = running.map(|turn| BranchPoint {
        conversation: turn.conversation,
        at: state.head.next(),
    });
    let place = found.end.or(running);
    let number = match place {
        Some(BranchPoint { conversation, at }) => {
            number(daemon, state, conversation, Within { id, seq: at }).await?
        }
        None => None,
    };
    Ok(api::Turn {
        id,
        conversation: place.map(|place| place.conversation),
        number,
        running: running.is_some(),
    })
}
