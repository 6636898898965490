//! The checks of an append: its length, its counter, the generation that it expects, and the origins of its branches.

use super::Journals;
use crate::error::{Error, Result};
use crate::store::{Ack, Source};
use agentd_core::event::{Body, ConversationBegan};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;

/// Events that one append may hold.
const MAX_EVENTS: usize = 20_000;

/// Checks the number of events. This needs no state, so the sender does it before the append is queued.
pub const fn check_length(events: usize) -> Result<()> {
    match events {
        0 => Err(Error::EmptyAppend),
        1..=MAX_EVENTS => Ok(()),
        _ => Err(Error::TooLarge {
            what: "an append",
            size: events,
            unit: "events",
            limit: MAX_EVENTS,
        }),
    }
}

pub fn check_generation(state: &AgentState, expected: Option<u64>) -> Result<()> {
    match expected {
        Some(expected) if expected != state.generation() => Err(Error::GenerationChanged {
            agent: state.id,
            expected,
            current: state.generation(),
        }),
        _ => Ok(()),
    }
}

/// A branch must not begin in text that was purged.
pub fn check_origin(journals: &impl Journals, state: &AgentState, body: &Body) -> Result<()> {
    let Body::ConversationBegan(ConversationBegan {
        from: Some(from), ..
    }) = body
    else {
        return Ok(());
    };
    let purged = |state: &AgentState| {
        let origin = state.tree.get(from.conversation);
        origin.is_some_and(|origin| origin.purged)
    };
    let purged = match from.agent == state.id {
        true => purged(state),
        // If the origin does not exist here, `verify` reports it.
        false => journals
            .state(from.agent)
            .is_ok_and(|(state, _)| purged(&state)),
    };
    match purged {
        true => Err(Error::OriginPurged {
            conversation: from.conversation,
        }),
        false => Ok(()),
    }
}

/// The answer if this append was applied before; `None` if it must be applied now; an error if it is refused. `newest`
/// is the newest append that had a counter, with its first and last event.
pub fn check_source(
    agent: AgentId,
    newest: Option<(Source, Seq, Seq)>,
    source: Option<Source>,
) -> Result<Option<Ack>> {
    let Some(sent) = source else { return Ok(None) };
    let Some((newest, first, last)) = newest else {
        return expect_next(agent, sent, 1);
    };
    // Counters begin at one, so this cannot be a repetition.
    if sent.n == 0 {
        return expect_next(agent, sent, newest.n + 1);
    }
    if sent.incarnation < newest.incarnation {
        return Err(Error::StaleIncarnation {
            agent,
            sent: sent.incarnation,
            current: newest.incarnation,
        });
    }
    if sent.incarnation > newest.incarnation {
        return expect_next(agent, sent, 1);
    }
    if sent.n == newest.n {
        let place = Some((first, last));
        return Ok(Some(Ack::Repeated { place }));
    }
    if sent.n < newest.n {
        return Ok(Some(Ack::Repeated { place: None }));
    }
    expect_next(agent, sent, newest.n + 1)
}

fn expect_next(agent: AgentId, sent: Source, expected: u64) -> Result<Option<Ack>> {
    if sent.n == expected {
        return Ok(None);
    }
    Err(Error::OutOfOrder {
        agent,
        sent: sent.n,
        expected,
    })
}
