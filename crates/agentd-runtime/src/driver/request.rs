//! The request in flight: its stream, its draft and its end.

use super::{Driver, Happening, JournalError, Observed};
use crate::provider::Failure;
use agentd_core::draft::{self, Delta, MAX_REPLY, MOST_GROWTH, Reply};
use agentd_core::event::FailureClass;
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
/// The limit of a reply, as it is shown.
const MAX_MIB: usize = MAX_REPLY / (1024 * 1024);

pub struct InFlight {
    id: TryId,
    task: JoinHandle<()>,
    reply: Reply,
    /// Deltas that are not on disk yet, and therefore not shown to clients yet.
    unkept: Vec<Delta>,
    unkept_bytes: usize,
    /// The same in the format of the draft.
    unkept_lines: String,
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
            unkept_lines: String::new(),
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

    /// Adds a delta. A part that has only begun is not written before its first text: there is nothing to show before
    /// that. What does not fit into a message is not added.
    fn grow(&mut self, delta: Delta) -> Result<Grown, JournalError> {
        for delta in draft::split(delta) {
            let line = draft::encode(std::slice::from_ref(&delta));
            let line = line.map_err(|error| JournalError::Broken(error.to_string()))?;
            let line = String::from_utf8(line);
            let line = line.map_err(|error| JournalError::Broken(error.to_string()))?;
            let whole = self.kept + (self.unkept_lines.len() + line.len()) as u64;
            if whole > MAX_REPLY as u64 {
                return Ok(Grown::TooLarge);
            }
            let size = size(&delta);
            if size > 0 {
                self.first_unkept.get_or_insert_with(Instant::now);
            }
            self.unkept_bytes += size;
            self.unkept_lines.push_str(&line);
            self.reply.apply(delta.clone());
            self.unkept.push(delta);
        }
        Ok(match self.unkept_bytes >= FLUSH_BYTES {
            true => Grown::Enough,
            false => Grown::Little,
        })
    }

    /// Whether the complete reply is larger than a message may be, although its draft is not.
    fn is_too_large(&self) -> bool {
        let draft = usize::try_from(self.kept).unwrap_or(usize::MAX);
        let draft = draft.saturating_add(self.unkept_lines.len());
        let may_be = draft.saturating_mul(MOST_GROWTH) > MAX_REPLY;
        may_be && draft.saturating_add(self.reply.growth()) > MAX_REPLY
    }
}

/// What a reply is after one more delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grown {
    Little,
    /// Enough has arrived to be written at once.
    Enough,
    /// It is larger than a message may be: the request must end.
    TooLarge,
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
                let _gone = deltas.send(Happening::Delta(id, delta, None));
            };
            let outcome = provider.stream(&request, on_delta).await;
            let _gone = happened.send(Happening::Streamed(id, outcome));
        });
        self.in_flight = Some(InFlight::new(id, task));
    }

    /// A piece of the reply to this request has arrived.
    pub(super) async fn arrived(
        &mut self,
        request: TryId,
        delta: Delta,
    ) -> Result<(), JournalError> {
        let in_flight = self.in_flight.as_mut().filter(|known| known.is(request));
        let Some(in_flight) = in_flight else {
            return Ok(());
        };
        match in_flight.grow(delta)? {
            Grown::Little => Ok(()),
            Grown::Enough => self.flush().await,
            Grown::TooLarge => {
                self.give_up(format!(
                    "the reply is larger than {MAX_MIB} MiB, the limit of a message: it was cut there"
                ));
                Ok(())
            }
        }
    }

    /// Writes what has arrived to the draft, and only then passes it to the observer.
    pub(super) async fn flush(&mut self) -> Result<(), JournalError> {
        let Some(in_flight) = &mut self.in_flight else {
            return Ok(());
        };
        let deltas = std::mem::take(&mut in_flight.unkept);
        let lines = std::mem::take(&mut in_flight.unkept_lines);
        in_flight.unkept_bytes = 0;
        in_flight.first_unkept = None;
        let id = in_flight.id;
        for piece in draft::pieces(&lines) {
            let offset = in_flight.kept;
            in_flight.kept += piece.len() as u64;
            let bytes = piece.as_bytes().to_vec();
            match self.journal.write_draft(id, offset, bytes).await {
                Ok(()) => {}
                Err(JournalError::DraftRefused(why)) => {
                    self.give_up(format!("the reply cannot be kept: {why}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        for delta in &deltas {
            (self.observer)(Observed::Delta(id, delta));
        }
        Ok(())
    }

    /// Ends the request in flight because its reply cannot be kept any longer; what has arrived is kept. The program of an
    /// outer agent is told when the turn has ended.
    fn give_up(&mut self, detail: String) {
        let Some(in_flight) = self.in_flight.take() else {
            return;
        };
        in_flight.task.abort();
        let (request, partial) = (in_flight.id, in_flight.reply);
        if in_flight.cancelled {
            return self.step(Input::RequestCancelled { request, partial });
        }
        let class = match self.provider.as_outer() {
            Some(_) => FailureClass::ProgramFailed,
            None => FailureClass::Rejected,
        };
        self.step(Input::RequestFailed {
            request,
            class,
            status: None,
            retry_after_ms: None,
            detail,
            partial,
        });
    }

    pub(super) fn streamed(&mut self, request: TryId, outcome: Result<End, Failure>) {
        let in_flight = self.in_flight.as_ref().filter(|known| known.is(request));
        if outcome.is_ok() && in_flight.is_some_and(InFlight::is_too_large) {
            return self.give_up(format!(
                "the reply is larger than {MAX_MIB} MiB, the limit of a message: its calls were not run"
            ));
        }
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
    use agentd_core::id::{CallId, Incarnation};

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
        assert_eq!(in_flight.grow(text("")).unwrap(), Grown::Little);
        assert_eq!(in_flight.flush_at(), None);
        assert_eq!(in_flight.grow(text("word")).unwrap(), Grown::Little);
        assert!(in_flight.flush_at().is_some());
        assert_eq!(in_flight.unkept.len(), 2);
        let long = text(&"word ".repeat(FLUSH_BYTES));
        assert_eq!(in_flight.grow(long).unwrap(), Grown::Enough);
    }

    /// JSON needs six bytes for each of these.
    #[tokio::test]
    async fn a_reply_grows_up_to_the_limit_of_a_message() {
        let id = TryId {
            incarnation: Incarnation(1),
            n: 1,
        };
        let mut in_flight = InFlight::new(id, tokio::spawn(async {}));
        let huge = text(&"\u{1}".repeat(8 * 1024 * 1024));
        assert_eq!(in_flight.grow(huge.clone()).unwrap(), Grown::TooLarge);
        assert_eq!(in_flight.grow(huge).unwrap(), Grown::TooLarge);
        assert!(in_flight.unkept_lines.len() <= MAX_REPLY);
        let kept = in_flight.reply.written_bytes();
        assert!(kept > 4 * 1024 * 1024, "{kept}");
        assert!(!in_flight.is_too_large());
    }

    /// In the message, each of these numbers has eighteen bytes.
    #[tokio::test]
    async fn a_reply_whose_numbers_grow_beyond_the_limit_is_too_large() {
        let id = TryId {
            incarnation: Incarnation(1),
            n: 1,
        };
        for (numbers, is_too_large) in [(1_000_000, false), (2_000_000, true)] {
            let mut in_flight = InFlight::new(id, tokio::spawn(async {}));
            let call = Change::Call {
                id: CallId::new("a"),
                name: "write".to_owned(),
            };
            let json = format!("{{\"a\":[1{}]}}", ",1e15".repeat(numbers));
            for change in [call, Change::Arguments { json }] {
                let delta = Delta { part: 0, change };
                assert_ne!(in_flight.grow(delta).unwrap(), Grown::TooLarge);
            }
            assert_eq!(in_flight.is_too_large(), is_too_large, "{numbers}");
        }
    }
}
