//! Reads what the chat shows.

use crate::chat::effect::Older;
use crate::error::{Error, Exit};
use crate::providers;
use agentd_client::Client;
use agentd_client::api::{Agent, EventQuery, OneConversation};
use agentd_core::event::{Body, Event};
use agentd_core::id::{ConversationId, Seq, TurnId};

/// How many events are loaded at once: a page of the API.
const PAGE: u64 = 500;
/// How far back the turn is read in which a page begins.
const CONTEXT: u64 = 2000;

pub async fn agent(client: &Client, name: &str) -> Result<Box<Agent>, Error> {
    Ok(Box::new(providers::with_model(client.agent(name).await?)))
}

/// The events before this one, and those of the turn in which they begin.
pub async fn older(client: &Client, id: &str, before: Seq) -> Result<Older, Error> {
    // The numbers of events have no gaps.
    let after = before.0.saturating_sub(1 + PAGE);
    let query = EventQuery {
        after,
        ..EventQuery::default()
    };
    let (mut events, _) = client.page(id, &query).await?;
    events.retain(|event| event.seq < before);
    // The log may begin later: a reset can clear it.
    let is_first = after == 0
        || events
            .first()
            .is_none_or(|first| first.seq.0 > after.saturating_add(1));
    let context = match events.first() {
        Some(first) => context(client, id, first).await?,
        None => Vec::new(),
    };
    Ok(Older {
        context,
        events,
        is_first,
    })
}

/// The events of a turn before this one.
async fn context(client: &Client, id: &str, first: &Event) -> Result<Vec<Event>, Error> {
    let Some(turn) = first.turn else {
        return Ok(Vec::new());
    };
    if matches!(first.body, Body::TurnStarted(_)) {
        return Ok(Vec::new());
    }
    of_turn(client, id, turn, first.seq).await
}

async fn of_turn(
    client: &Client,
    id: &str,
    turn: TurnId,
    before: Seq,
) -> Result<Vec<Event>, Error> {
    let mut query = EventQuery {
        after: before.0.saturating_sub(CONTEXT),
        turn: Some(turn),
        ..EventQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let (events, next) = client.page(id, &query).await?;
        found.extend(events.into_iter().filter(|event| event.seq < before));
        match next {
            // A page that does not advance would be requested again without end.
            Some(next) if next.0 > query.after && next < before => query.after = next.0,
            _ => return Ok(found),
        }
    }
}

/// A conversation with its turns; without an id, the current one.
pub async fn turns(
    client: &Client,
    id: &str,
    of: Option<ConversationId>,
) -> Result<Box<OneConversation>, Error> {
    let of = match of {
        Some(of) => of,
        None => {
            let current = client.agent(id).await?.conversation;
            let current = current.map(|current| current.id);
            current.ok_or_else(|| Error::new(Exit::NotFound, "there is no conversation yet"))?
        }
    };
    let one = client.conversation(id, &of.to_string()).await?;
    Ok(Box::new(one))
}
