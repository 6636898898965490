//! Events: one page, or a live stream. Each event is sent once, in order. A client that reconnects with the last id
//! gets the events after it.
//!
//! A stream ends with `end` when everything that was requested has been sent, or with `problem` when the journal
//! cannot be read. A stream that ends without either was cut off, and the client requests the rest.

mod gaps;

use super::respond::{self, Fault, Path, Query};
use super::share::{Share, StreamPlace};
use crate::daemon::{AgentHandle, Daemon, Live};
use crate::ending::{Ending, left};
use crate::error::{Error, Kind};
use agentd_client::api::{AllEventsQuery, EventQuery};
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use agentd_failpoint as failpoint;
use agentd_store::{Cursor, ReadQuery, Unreadable};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONNECTION;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream::{self, Stream, StreamExt as _};
use gaps::Gaps;
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

const PAGE: usize = 500;

pub(super) type Item = Result<axum::response::sse::Event, Infallible>;

pub(super) fn named(name: &str, data: String) -> Item {
    let item = axum::response::sse::Event::default();
    Ok(item.event(name).data(data))
}

/// An event as an item of the stream; a problem if it cannot be written as JSON.
fn item(id: impl ToString, event: &Event) -> Result<Item, Error> {
    let data = serde_json::to_string(event).map_err(|error| {
        let what = format!("event {} cannot be written as JSON", event.seq);
        Error::new(Kind::Internal, what).because(error)
    })?;
    let item = axum::response::sse::Event::default();
    Ok(Ok(item.event("event").id(id.to_string()).data(data)))
}

fn caught_up() -> Item {
    named("caught_up", "{}".to_owned())
}

/// Everything that was requested has been sent.
fn end() -> Item {
    named("end", "{}".to_owned())
}

/// The request cannot be carried out, or the journal cannot be read: the last item of the stream.
pub(super) fn problem(error: Error) -> Item {
    let problem = respond::problem(error);
    named(
        "problem",
        serde_json::to_string(&problem).unwrap_or_default(),
    )
}

/// The last event that a reconnecting client has received.
fn last_id(headers: &HeaderMap) -> Result<Option<&str>, Fault> {
    let Some(id) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let id = id.to_str().map_err(|_| bad_id())?;
    Ok(Some(id).filter(|id| !id.is_empty()))
}

fn bad_id() -> Fault {
    let what = "`Last-Event-ID` is no id of an event of this stream";
    let error = Error::new(Kind::Invalid, what);
    error
        .next("leave it out, or send the last id that the stream had")
        .into()
}

/// An event that was committed is not in the journal.
fn missing(agent: AgentId, seq: Seq) -> Item {
    let reason = Unreadable::Gap;
    let error = Error::from(agentd_store::Error::Damaged { agent, seq, reason });
    problem(error.next("`agentd verify` shows what is damaged"))
}

pub async fn of_agent(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(query): Query<EventQuery>,
    Extension(share): Extension<Share>,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let handle = daemon.any(&name).await?;
    let last = last_id(&headers)?.map(|id| id.parse().map_err(|_| bad_id()));
    let last: Option<u64> = last.transpose()?;
    let mut after = Seq(last.unwrap_or(query.after));
    // The log begins at the last reset that cleared it, unless the query asks for a conversation or for everything.
    if !query.all && query.conversation.is_none() {
        let begins = handle.lock().await.state.resets.log_begins();
        let begins = begins.map_or(0, |begins| begins.0.saturating_sub(1));
        after = after.max(Seq(begins));
    }
    let read = ReadQuery {
        conversation: query.conversation,
        turn: query.turn,
        since: query.since,
        until: query.until,
        ..ReadQuery::all(handle.id, after, PAGE)
    };
    if query.follow {
        return Ok(stream_of(share.begin_stream()?, handle, read));
    }
    let is_whole = read.is_whole();
    // Taken before the read: everything up to it is committed, so the read must return it.
    let head = handle.lock().await.state.head;
    let page = daemon.store.read(read).await?;
    let last = page.events.last().map_or(after, |event| event.seq);
    if is_whole && page.next.is_none() && last < head {
        let what = format!("the journal ends with event {last}, but event {head} was committed");
        let problem = Error::new(Kind::Internal, what);
        return Err(problem.next("`agentd verify` shows what is damaged").into());
    }
    Ok(Json((page.events, page.next)).into_response())
}

/// The items that are ready to be sent on a stream, and whether more can follow.
#[derive(Default)]
struct Ready {
    items: VecDeque<Item>,
    /// The last item is `end` or `problem`.
    is_over: bool,
}

impl Ready {
    fn end_with(&mut self, last: Item) {
        self.items.push_back(last);
        self.is_over = true;
    }

    /// Adds an event, or the problem that ends the stream. False if the stream has ended.
    fn event(&mut self, id: impl ToString, event: &Event) -> bool {
        match item(id, event) {
            Ok(item) => self.items.push_back(item),
            Err(why) => self.end_with(problem(why)),
        }
        !self.is_over
    }
}

/// One reader of one agent's events.
struct Reader {
    handle: AgentHandle,
    query: ReadQuery,
    changes: watch::Receiver<u64>,
    live: broadcast::Receiver<Live>,
    /// Comes after the events that are committed now.
    held: Option<Item>,
    ending: watch::Receiver<Ending>,
    ready: Ready,
    is_live: bool,
}

fn stream_of(place: StreamPlace, handle: AgentHandle, query: ReadQuery) -> Response {
    let reader = Reader {
        changes: handle.changes(),
        live: handle.live(),
        held: None,
        ending: handle.daemon.ending(),
        handle,
        query,
        ready: Ready::default(),
        is_live: false,
    };
    let items = stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    });
    sse(place, items)
}

/// A response that is a stream. Its connection ends with it.
pub(super) fn sse(
    place: StreamPlace,
    items: impl Stream<Item = Item> + Send + 'static,
) -> Response {
    let items = items.inspect(move |_| {
        let _held_by_the_stream = &place;
    });
    let stream = Sse::new(items.boxed());
    let stream = stream.keep_alive(KeepAlive::default());
    ([(CONNECTION, "close")], stream).into_response()
}

impl Reader {
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.items.pop_front() {
                return Some(item);
            }
            if self.ready.is_over || *self.ending.borrow() == Ending::Leaves {
                return None;
            }
            self.changes.borrow_and_update();
            // Taken before the read: everything up to it is committed, so the read must return it.
            let head = match self.query.is_whole() {
                true => self.handle.lock().await.state.head,
                false => Seq::ZERO,
            };
            let page = match self.handle.daemon.store.read(self.query.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    self.ready.end_with(problem(error.into()));
                    continue;
                }
            };
            for event in &page.events {
                self.query.after = event.seq;
                if !self.ready.event(event.seq, event) {
                    break;
                }
            }
            if !page.events.is_empty() {
                continue;
            }
            if self.query.after < head {
                let next = self.query.after.next();
                self.ready.end_with(missing(self.handle.id, next));
                continue;
            }
            if !std::mem::replace(&mut self.is_live, true) {
                return Some(caught_up());
            }
            if let Some(held) = self.held.take() {
                return Some(held);
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                live = self.live.recv() => match live {
                    Ok(Live::Delta(delta)) => return Some(show("delta", &delta)),
                    // Not before the start of its call.
                    Ok(Live::Progress(progress)) => self.held = Some(show("progress", &progress)),
                    // The reader was too slow and missed some; the message contains the full text.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = left(&mut self.ending) => return None,
            }
        }
    }
}

fn show(name: &str, live: &impl Serialize) -> Item {
    named(name, serde_json::to_string(live).unwrap_or_default())
}

/// One reader of all agents' events.
struct AllReader {
    daemon: Arc<Daemon>,
    after: Cursor,
    /// Whether the stream continues with new events after the existing ones.
    follows: bool,
    gaps: Gaps,
    ready: Ready,
    is_live: bool,
}

pub async fn of_all(
    State(daemon): State<Arc<Daemon>>,
    Query(query): Query<AllEventsQuery>,
    Extension(share): Extension<Share>,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let after = last_id(&headers)?.unwrap_or(&query.after);
    let reader = AllReader {
        daemon,
        gaps: Gaps::new(after.is_empty()),
        after: Cursor::from_text(after),
        follows: query.follow,
        ready: Ready::default(),
        is_live: false,
    };
    let items = stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    });
    Ok(sse(share.begin_stream()?, items))
}

impl AllReader {
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.items.pop_front() {
                return Some(item);
            }
            if self.ready.is_over || *self.daemon.ending().borrow() == Ending::Leaves {
                return None;
            }
            let mut commits = self.daemon.store.commits();
            let page = match self.daemon.store.read_all(self.after.clone(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    self.ready.end_with(problem(error.into()));
                    continue;
                }
            };
            for (cursor, event) in &page.events {
                self.after = cursor.clone();
                if let Some(lost) = self.gaps.before(event) {
                    self.ready.end_with(missing(event.agent, lost));
                    break;
                }
                if !self.ready.event(cursor, event) {
                    break;
                }
            }
            if failpoint::injected_bug("short_stream") && !page.events.is_empty() {
                // An injected bug: a part of the journal is sent as if it were all of it.
                self.ready.end_with(end());
            }
            if !self.ready.items.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut self.is_live, true) {
                return Some(caught_up());
            }
            if !self.follows {
                self.ready.end_with(end());
                continue;
            }
            let mut ending = self.daemon.ending();
            tokio::select! {
                more = commits.next() => if !more { return None },
                () = left(&mut ending) => return None,
            }
        }
    }
}
