//! A stream of events, as the daemon sends them. It says how it ends; one that just ends was cut off.

use crate::api::{Delta, Item};
use crate::error::{Error, Problem};
use agentd_core::event::Event;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use sse_stream::SseStream;

pub struct Events {
    source: SseStream<Incoming>,
    cursor: Option<u64>,
    /// It ended, in whichever way.
    is_over: bool,
}

impl Events {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            source: SseStream::new(body),
            cursor: None,
            is_over: false,
        }
    }

    /// Where the last event stands: whoever asks for what is after it misses nothing.
    pub const fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The next thing; none after the stream said that it ends. A stream that was cut off, and one that the
    /// daemon could not go on with, is an error: what came before it is not all there is.
    pub async fn next(&mut self) -> Option<Result<Item, Error>> {
        if self.is_over {
            return None;
        }
        let next = self.read().await;
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }

    async fn read(&mut self) -> Result<Option<Item>, Error> {
        loop {
            let sse = match self.source.next().await {
                Some(Ok(sse)) => sse,
                Some(Err(error)) => return Err(Error::Broken(error.to_string())),
                None => return Err(Error::Broken("the stream was cut off".to_owned())),
            };
            if let Some(id) = sse.id.as_deref().and_then(|id| id.parse().ok()) {
                self.cursor = Some(id);
            }
            let data = sse.data.unwrap_or_default();
            let item = match sse.event.as_deref() {
                Some("delta") => serde_json::from_str::<Delta>(&data).map(Item::Delta),
                Some("caught_up") => Ok(Item::CaughtUp),
                Some("event") => {
                    serde_json::from_str::<Event>(&data).map(|event| Item::Event(Box::new(event)))
                }
                Some("end") => return Ok(None),
                Some("problem") => match serde_json::from_str::<Problem>(&data) {
                    Ok(problem) => return Err(Error::Problem(Box::new(problem))),
                    Err(error) => Err(error),
                },
                // A comment, or something newer than this client.
                _ => continue,
            };
            return item
                .map(Some)
                .map_err(|error| Error::Strange(error.to_string()));
        }
    }
}
