//! Follows an agent's events across restarts of the daemon: each event is seen once.

use crate::connect::Connection;
use crate::error::Error;
use agentd_client::Events;
use agentd_client::api::{Delta, EventQuery, Item};
use agentd_core::event::{Body, Event};
use agentd_core::mcp::CallProgress;
use futures_util::stream::{self, Stream};

pub enum Seen {
    Event(Box<Event>),
    /// A new piece of a streaming reply. Only for a request whose `request_sent` was seen live, and
    /// without a gap: the rest of the reply comes with its message.
    Delta(Delta),
    /// How far a running call is.
    Progress(CallProgress),
    /// All earlier events have been seen; what follows is live. Returned once.
    CaughtUp,
    /// The connection broke, and is made again. Only after [`Follow::reporting_breaks`].
    Lost,
    /// The connection is there again; the events that were missed come next.
    Found,
}

pub struct Follow {
    name: String,
    query: EventQuery,
    stream: Option<Events>,
    /// The stream has reached live events.
    is_live: bool,
    was_live: bool,
    /// The request whose reply is shown as it streams.
    streaming: Option<String>,
    /// A request of whose reply some text was missed.
    missed: Option<String>,
    reports_breaks: bool,
    /// The connection is broken.
    is_lost: bool,
    /// Why it broke, until it is made again.
    broken: Option<agentd_client::Error>,
}

impl Follow {
    pub fn new(name: impl Into<String>, query: EventQuery) -> Self {
        Self {
            name: name.into(),
            query,
            stream: None,
            is_live: false,
            was_live: false,
            streaming: None,
            missed: None,
            reports_breaks: false,
            is_lost: false,
            broken: None,
        }
    }

    /// Also returns [`Seen::Lost`] and [`Seen::Found`].
    pub fn reporting_breaks(mut self) -> Self {
        self.reports_breaks = true;
        self
    }

    /// What is seen, as a stream. Its next item may be awaited repeatedly, among other futures.
    pub fn stream(self, connection: &mut Connection) -> impl Stream<Item = Result<Seen, Error>> {
        stream::unfold((self, connection), |(mut follow, connection)| async move {
            let next = follow.next(connection).await;
            Some((next, (follow, connection)))
        })
    }

    /// The same with a connection of its own.
    pub fn into_stream(self, connection: Connection) -> impl Stream<Item = Result<Seen, Error>> {
        stream::unfold(
            (self, connection),
            |(mut follow, mut connection)| async move {
                let next = follow.next(&mut connection).await;
                Some((next, (follow, connection)))
            },
        )
    }

    pub async fn next(&mut self, connection: &mut Connection) -> Result<Seen, Error> {
        loop {
            if let Some(error) = self.broken.take() {
                connection.or_again::<()>(Err(error)).await?;
            }
            let Some(stream) = &mut self.stream else {
                let opened = connection.client.follow(&self.name, &self.query).await;
                match opened {
                    Err(error) if error.is_gone() => {
                        self.broken = Some(error);
                        if self.lose() {
                            return Ok(Seen::Lost);
                        }
                    }
                    opened => {
                        self.stream = connection.or_again(opened).await?;
                        if std::mem::take(&mut self.is_lost) && self.reports_breaks {
                            return Ok(Seen::Found);
                        }
                    }
                }
                continue;
            };
            let item = match stream.next().await {
                Some(Err(error)) if error.is_gone() => {
                    self.broken = Some(error);
                    None
                }
                Some(item) => connection.or_again(item).await?,
                // The stream never ends by itself: the connection broke.
                None => None,
            };
            let Some(item) = item else {
                self.stream = None;
                self.is_live = false;
                self.streaming = None;
                if self.lose() {
                    return Ok(Seen::Lost);
                }
                continue;
            };
            if let Some(seen) = self.look(item) {
                return Ok(seen);
            }
        }
    }

    /// Notes that the connection is broken; whether that is to be reported.
    const fn lose(&mut self) -> bool {
        let is_new = !self.is_lost;
        self.is_lost = true;
        is_new && self.reports_breaks
    }

    fn look(&mut self, item: Item) -> Option<Seen> {
        match item {
            Item::Event(event) => {
                if event.seq.0 <= self.query.after {
                    return None;
                }
                self.query.after = event.seq.0;
                if let Body::RequestSent(sent) = &event.body {
                    let request = Some(sent.request.to_string());
                    let is_whole = self.is_live && self.missed != request;
                    self.streaming = request.filter(|_| is_whole);
                }
                if let Body::RequestEnded(_) | Body::MessageAdded(_) = &event.body {
                    self.streaming = None;
                }
                Some(Seen::Event(event))
            }
            Item::Delta(delta) => {
                if self.streaming.as_ref() == Some(&delta.request) {
                    return Some(Seen::Delta(delta));
                }
                self.missed = Some(delta.request);
                None
            }
            Item::Progress(progress) => Some(Seen::Progress(progress)),
            Item::CaughtUp => {
                self.is_live = true;
                let is_first = !std::mem::replace(&mut self.was_live, true);
                is_first.then_some(Seen::CaughtUp)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::{Grant, Purpose, RequestSent};
    use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId};
    use agentd_core::time::Timestamp;
    use uuid::Uuid;

    fn event(seq: u64) -> Item {
        let request = TryId {
            incarnation: Incarnation(1),
            n: seq,
        };
        let sent = RequestSent {
            request,
            purpose: Purpose::Answer,
            grant: Grant::default(),
        };
        Item::Event(Box::new(Event {
            agent: AgentId::new(Uuid::nil()),
            seq: Seq(seq),
            at: Timestamp::default(),
            conversation: ConversationId::new(Uuid::nil()),
            turn: None,
            body: sent.into(),
        }))
    }

    fn delta(request: &str) -> Item {
        Item::Delta(Delta {
            request: request.to_owned(),
            text: "a".to_owned(),
            thinking: String::new(),
        })
    }

    #[test]
    fn an_event_is_seen_once() {
        let mut follow = Follow::new("a", EventQuery::default());
        assert!(follow.look(event(1)).is_some());
        assert!(follow.look(event(2)).is_some());
        assert!(follow.look(event(1)).is_none());
        assert!(follow.look(event(2)).is_none());
        assert!(follow.look(event(3)).is_some());
    }

    #[test]
    fn only_a_reply_that_is_seen_from_its_beginning_streams() {
        let mut follow = Follow::new("a", EventQuery::default());
        assert!(follow.look(event(1)).is_some());
        assert!(follow.look(delta("1.1")).is_none());
        assert!(follow.look(Item::CaughtUp).is_some());
        assert!(follow.look(delta("1.1")).is_none());
        assert!(follow.look(event(2)).is_some());
        assert!(follow.look(delta("1.2")).is_some());
        assert!(follow.look(Item::CaughtUp).is_none());
        // A delta that arrives before its `request_sent`.
        assert!(follow.look(delta("1.3")).is_none());
        assert!(follow.look(event(3)).is_some());
        assert!(follow.look(delta("1.3")).is_none());
    }
}
