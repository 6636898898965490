//! Events: a page of them, or a stream that goes on. Each comes once, in order; whoever comes back with the
//! last id goes on from there.

use super::respond::{Fault, Path, Query};
use crate::daemon::{Daemon, Ending, left};
use crate::desk::Desk;
use crate::problem::of_store;
use agentd_client::api::{AllEventsQuery, EventQuery};
use agentd_core::event::Event;
use agentd_core::id::Seq;
use agentd_store::{Cursor, ReadQuery};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

const PAGE: usize = 500;

type Item = Result<axum::response::sse::Event, Infallible>;

fn item(id: impl ToString, event: &Event) -> Item {
    let data = serde_json::to_string(event).unwrap_or_default();
    let item = axum::response::sse::Event::default();
    Ok(item.event("event").id(id.to_string()).data(data))
}

fn caught_up() -> Item {
    Ok(axum::response::sse::Event::default()
        .event("caught_up")
        .data("{}"))
}

/// Where a client that comes back wants to go on.
fn last_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

pub async fn of_agent(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let desk = daemon.any(&name).await?;
    let mut after = Seq(last_id(&headers).unwrap_or(query.after));
    // A conversation that was named is shown whole.
    if !query.all && query.conversation.is_none() {
        let begins = desk.lock().await.state.resets.log_begins();
        let begins = begins.map_or(0, |begins| begins.0.saturating_sub(1));
        after = after.max(Seq(begins));
    }
    let read = ReadQuery {
        conversation: query.conversation,
        turn: query.turn,
        ..ReadQuery::all(desk.id, after, PAGE)
    };
    if query.follow {
        return Ok(stream_of(daemon, desk, read));
    }
    let page = daemon.store.read(read).await;
    let page = page.map_err(|error| of_store(&error))?;
    Ok(Json((page.events, page.next)).into_response())
}

/// One reader of one agent's events.
struct Reader {
    daemon: Arc<Daemon>,
    /// Held, so that it stays at hand.
    _desk: Arc<Desk>,
    query: ReadQuery,
    changes: watch::Receiver<u64>,
    deltas: broadcast::Receiver<agentd_client::api::Delta>,
    ending: watch::Receiver<Ending>,
    ready: VecDeque<Item>,
    is_live: bool,
}

fn stream_of(daemon: Arc<Daemon>, desk: Arc<Desk>, query: ReadQuery) -> Response {
    let reader = Reader {
        changes: desk.changes(),
        deltas: desk.deltas(),
        ending: daemon.ending(),
        daemon,
        _desk: desk,
        query,
        ready: VecDeque::new(),
        is_live: false,
    };
    let items = stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    });
    sse(items)
}

fn sse(items: impl Stream<Item = Item> + Send + 'static) -> Response {
    let stream = Sse::new(items.boxed());
    stream.keep_alive(KeepAlive::default()).into_response()
}

impl Reader {
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if *self.ending.borrow() == Ending::Leaves {
                return None;
            }
            self.changes.borrow_and_update();
            let page = self.daemon.store.read(self.query.clone()).await;
            let Ok(page) = page else { return None };
            for event in &page.events {
                self.query.after = event.seq;
                self.ready.push_back(item(event.seq, event));
            }
            if !page.events.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut self.is_live, true) {
                return Some(caught_up());
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                delta = self.deltas.recv() => match delta {
                    Ok(delta) => return Some(say(&delta)),
                    // It was too slow; the message has all of it.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = left(&mut self.ending) => return None,
            }
        }
    }
}

fn say(delta: &agentd_client::api::Delta) -> Item {
    let data = serde_json::to_string(delta).unwrap_or_default();
    let item = axum::response::sse::Event::default();
    Ok(item.event("delta").data(data))
}

pub async fn of_all(
    State(daemon): State<Arc<Daemon>>,
    Query(query): Query<AllEventsQuery>,
    headers: HeaderMap,
) -> Response {
    let after = Cursor(last_id(&headers).unwrap_or(query.after));
    let state = (daemon, after, VecDeque::<Item>::new(), false, query.follow);
    let items = stream::unfold(state, |state| async move {
        let (daemon, mut after, mut ready, mut is_live, follow) = state;
        loop {
            if let Some(item) = ready.pop_front() {
                return Some((item, (daemon, after, ready, is_live, follow)));
            }
            if daemon.is_ending() {
                return None;
            }
            let mut commits = daemon.store.commits();
            let page = daemon.store.read_all(after, PAGE).await.ok()?;
            for (cursor, event) in &page.events {
                after = *cursor;
                ready.push_back(item(cursor.0, event));
            }
            if !ready.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut is_live, true) {
                return Some((caught_up(), (daemon, after, ready, is_live, follow)));
            }
            if !follow {
                return None;
            }
            let mut ending = daemon.ending();
            tokio::select! {
                more = commits.next() => if !more { return None },
                () = left(&mut ending) => return None,
            }
        }
    });
    sse(items)
}
