//! A stream of events from the daemon. It ends with `end` or `problem`; a stream that ends without either was cut off.

use crate::api::{Delta, Item};
use crate::error::{Error, Problem};
use agentd_core::event::Event;
use agentd_core::mcp::CallProgress;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use sse_stream::SseStream;

pub struct Events {
    source: SseStream<Incoming>,
    cursor: Option<String>,
    /// It has ended, with `end`, a problem or an error.
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

    /// The position of the last event, as the daemon wrote it. A client that requests the events after it misses none.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The next item; none after the stream's `end`. A stream that was cut off, or that ended with a problem, is an
    /// error, because items are missing.
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
            if let Some(id) = sse.id {
                self.cursor = Some(id);
            }
            let data = sse.data.unwrap_or_default();
            let item = match sse.event.as_deref() {
                Some("delta") => serde_json::from_str::<Delta>(&data).map(Item::Delta),
                Some("progress") => serde_json::from_str::<CallProgress>(&data).map(Item::Progress),
                Some("caught_up") => Ok(Item::CaughtUp),
                Some("event") => {
                    serde_json::from_str::<Event>(&data).map(|event| Item::Event(Box::new(event)))
                }
                Some("end") => return Ok(None),
                Some("problem") => match serde_json::from_str::<Problem>(&data) {
                    Ok(problem) => return Err(Error::Problem(Box::new(problem))),
                    Err(error) => Err(error),
                },
                // A comment, or an item that a newer daemon sends.
                _ => continue,
            };
            return item
                .map(Some)
                .map_err(|error| Error::Strange(error.to_string()));
        }
    }
}
