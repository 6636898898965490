//! A stream of events, as the daemon sends them.

use crate::api::{Delta, Item};
use crate::error::Error;
use agentd_core::event::Event;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use sse_stream::SseStream;

pub struct Events {
    source: SseStream<Incoming>,
    cursor: Option<u64>,
}

impl Events {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            source: SseStream::new(body),
            cursor: None,
        }
    }

    /// Where the last event stands: whoever asks for what is after it misses nothing.
    pub const fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The next thing; none where the stream ended.
    pub async fn next(&mut self) -> Option<Result<Item, Error>> {
        loop {
            let sse = match self.source.next().await? {
                Ok(sse) => sse,
                Err(error) => return Some(Err(Error::Broken(error.to_string()))),
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
                // A comment, or something newer than this client.
                _ => continue,
            };
            return Some(item.map_err(|error| Error::Strange(error.to_string())));
        }
    }
}
