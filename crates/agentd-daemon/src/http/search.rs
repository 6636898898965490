//! Search over everything that was said.

use super::respond::{Answer, JsonBody, Query};
use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::turns;
use agentd_client::api::{AgentRef, Found, Hit, Role, Search};
use agentd_core::event::{Body, Event};
use agentd_core::search::Terms;
use agentd_store::{Cursor, SearchQuery};
use axum::extract::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Hits of a page, if the request names no limit.
const PAGE: usize = 20;
const LONGEST_PAGE: usize = 200;
/// How long a search waits for the index.
const INDEXED: Duration = Duration::from_secs(3);

pub async fn search(
    State(daemon): State<Arc<Daemon>>,
    Query(search): Query<Search>,
) -> Answer<Found> {
    let Some(terms) = Terms::parse(&search.words) else {
        let error = Error::new(Kind::Invalid, "there is no word to search for");
        return Err(error
            .next("pass a word of at least one letter or digit")
            .into());
    };
    let agent = match &search.agent {
        Some(name) => Some(daemon.find_any(name).await?),
        None => None,
    };
    let query = SearchQuery {
        text: terms.query(),
        agent,
        limit: search.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE),
        before: search.before.map(Cursor::from_text),
    };
    // Later pages continue a search that waited.
    let incomplete = query.before.is_none() && !is_indexed(&daemon).await;
    let page = daemon.store.search(query).await?;
    let mut hits = Vec::new();
    for (_, event) in &page.hits {
        hits.extend(hit(&daemon, &terms, event).await?);
    }
    let next = page.next.map(|next| next.to_string());
    Ok(JsonBody(Found {
        hits,
        next,
        incomplete,
    }))
}

/// Waits until everything is indexed that was committed before now; false if that takes too long, for example after a large
/// import.
async fn is_indexed(daemon: &Daemon) -> bool {
    let caught_up = timeout(INDEXED, daemon.store.wait_caught_up()).await;
    matches!(caught_up, Ok(Ok(())))
}

/// None if the event is of a kind that has no text for users. A hit in a damaged journal has no numbers.
async fn hit(daemon: &Arc<Daemon>, terms: &Terms, event: &Event) -> Result<Option<Hit>> {
    let Some(role) = role(&event.body) else {
        return Ok(None);
    };
    let turn = turns::of_event(daemon, event).await?;
    let state = match daemon.readable(event.agent).await? {
        Some(handle) => Some(handle.lock().await.state.clone()),
        None => None,
    };
    let number = match (&state, turn) {
        (Some(state), Some(turn)) => turns::number(daemon, state, event.conversation, turn).await?,
        _ => None,
    };
    let known = state
        .as_ref()
        .and_then(|state| state.tree.get(event.conversation));
    let snippet = terms.snippet(&event.body.words().join("\n"));
    Ok(Some(Hit {
        agent: AgentRef {
            id: event.agent,
            name: state.as_ref().map(|state| state.name.clone()),
        },
        conversation: event.conversation,
        ordinal: known.map(|known| known.ordinal),
        turn: turn.map(|turn| turn.id),
        number,
        seq: event.seq,
        at: event.at,
        role,
        snippet: snippet.text,
        matches: snippet.matches,
    }))
}

const fn role(body: &Body) -> Option<Role> {
    Some(match body {
        Body::Prompt(_) | Body::SchedulePrompt(_) => Role::User,
        Body::MessageAdded(_) => Role::Assistant,
        Body::ResultAdded(_) => Role::Tool,
        Body::Notice(_) => Role::Notice,
        Body::Summary(_) => Role::Summary,
        Body::HookOutput(_) => Role::Hook,
        Body::Note(_) | Body::Instruction(_) => Role::Note,
        _ => return None,
    })
}
