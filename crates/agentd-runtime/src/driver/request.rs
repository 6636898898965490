//! The request in flight: its stream, its draft and its end.

use super::{Driver, Happening, JournalError, Observed};
use crate::provider::Failure;
use agentd_core::draft::{self, Delta, Reply};
use agentd_core::id::TryId;
use agentd_core::request::Request;
use agentd_core::turn::Input;
use agentd_core::wire::stream::End;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A draft is written to disk after this time or this many bytes, whichever comes first.
const FLUSH_AFTER: Duration = Duration::from_millis(50);
const FLUSH_BYTES: usize = 2048;

pub struct InFlight {
    id: TryId,
    task: JoinHandle<()>,
    reply: Reply,
    /// Deltas that are not on disk yet, and therefore not shown to clients yet.
    unkept: Vec<Delta>,
    unkept_bytes: usize,
    first_unkept: Option<Instant>,
    /// Bytes of the draft that are on disk.
    kept: u64,
    /// The program of an outer agent was told to end its turn.
    cancelled: bool,
}

impl InFlight {
    fn new(id: TryId, task: JoinHandle<()>) -> Self {
        Self {
            id,
            task,
            reply: Reply::default(),
            unkept: Vec::new(),
            unkept_bytes: 0,
            first_unkept: None,
            kept: 0,
            cancelled: false,
        }
    }

    pub fn is(&self, request: TryId) -> bool {
        self.id == request
    }

    pub fn flush_at(&self) -> Option<Instant> {
        self.first_unkept.map(|first| first + FLUSH_AFTER)
    }

    /// Returns true if enough has arrived to be written at once. A part that has only begun is not written before its
    /// first text: there is nothing to show before that.
    pub fn grow(&mut self, delta: Delta) -> bool {
        let size = size(&delta);
        if size > 0 {
            self.first_unkept.get_or_insert_with(Instant::now);
        }
        self.unkept_bytes += size;
        self.reply.apply(delta.clone());
        self.unkept.push(delta);
        self.unkept_bytes >= FLUSH_BYTES
    }
}

fn size(delta: &Delta) -> usize {
    use agentd_core::draft::Change;
    match &delta.change {
        Change::Text { text } | Change::Thinking { text } => text.len(),
        Change::Arguments { json } => json.len(),
        _ => 64,
    }
}

impl Driver {
    pub(super) fn send(&mut self, id: TryId, request: Request) {
        if let Some(task) = self.send_outer(id) {
            self.in_flight = Some(InFlight::new(id, task));
            return;
        }
        let (provider, happened) = (self.provider.clone(), self.happened.clone());
        let task = tokio::spawn(async move {
            let deltas = happened.clone();
            let on_delta = move |delta| {
                let _gone = deltas.send(Happening::Delta(id, delta));
            };
            let outcome = provider.stream(&request, on_delta).await;
            let _gone = happened.send(Happening::Streamed(id, outcome));
        });
        self.in_flight = Some(InFlight::new(id, task));
    }

    /// Writes what has arrived to the draft, and only then passes it to the observer.
    pub(super) async fn flush(&mut self) -> Result<(), JournalError> {
        let Some(in_flight) = &mut self.in_flight else {
            return Ok(());
        };
        let deltas = std::mem::take(&mut in_flight.unkept);
        in_flight.unkept_bytes = 0;
        in_flight.first_unkept = None;
        if deltas.is_empty() {
            return Ok(());
        }
        let bytes =
            draft::encode(&deltas).map_err(|error| JournalError::Broken(error.to_string()))?;
        let (id, offset) = (in_flight.id, in_flight.kept);
        in_flight.kept += bytes.len() as u64;
        self.journal.write_draft(id, offset, bytes).await?;
        for delta in &deltas {
            (self.observer)(Observed::Delta(id, delta));
        }
        Ok(())
    }

    pub(super) fn streamed(&mut self, request: TryId, outcome: Result<End, Failure>) {
        // The end of a cancelled request may arrive after the cancellation.
        let Some(in_flight) = self.in_flight.take_if(|known| known.is(request)) else {
            return;
        };
        // Clients see only what is on disk: the rest arrives with the message.
        let reply = in_flight.reply;
        if in_flight.cancelled {
            let partial = reply;
            return self.step(Input::RequestCancelled { request, partial });
        }
        self.step(match outcome {
            Ok(end) => Input::Replied {
                request,
                reply,
                stop: end.stop,
                usage: end.usage,
                provider_request: end.provider_request,
            },
            Err(failure) => Input::RequestFailed {
                request,
                class: failure.class,
                status: failure.status,
                retry_after_ms: failure.retry_after_ms,
                detail: failure.detail,
                partial: reply,
            },
        });
    }

    /// Aborts the stream at once; what has arrived is kept.
    pub(super) fn cancel_request(&mut self, request: TryId) {
        if let Some(outer) = self.provider.as_outer() {
            // It ends when the program has confirmed that, or is dead.
            if let Some(in_flight) = self.in_flight.as_mut().filter(|known| known.is(request)) {
                in_flight.cancelled = true;
                let (outer, turn) = (outer.clone(), outer.newest_turn());
                tokio::spawn(async move { outer.cancel(turn).await });
            }
            return;
        }
        let Some(in_flight) = self.in_flight.take_if(|known| known.is(request)) else {
            return;
        };
        in_flight.task.abort();
        let partial = in_flight.reply;
        self.step(Input::RequestCancelled { request, partial });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::draft::Change;
    use agentd_core::id::Incarnation;

    fn text(text: &str) -> Delta {
        let text = text.to_owned();
        Delta {
            part: 0,
            change: Change::Text { text },
        }
    }

    /// Some providers say that a text begins before they say a word of it. Shown by itself, that was a
    /// sight of a reply of which a crash left nothing.
    #[tokio::test]
    async fn a_text_without_a_word_is_not_shown_by_itself() {
        let id = TryId {
            incarnation: Incarnation(1),
            n: 1,
        };
        let mut in_flight = InFlight::new(id, tokio::spawn(async {}));
        assert!(!in_flight.grow(text("")));
        assert_eq!(in_flight.flush_at(), None);
        assert!(!in_flight.grow(text("word")));
        assert!(in_flight.flush_at().is_some());
        assert_eq!(in_flight.unkept.len(), 2);
        assert!(in_flight.grow(text(&"word ".repeat(FLUSH_BYTES))));
    }
}
