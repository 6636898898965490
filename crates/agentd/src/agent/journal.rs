//! The runtime's journal, in a store that this process has open itself.

use agentd_core::event::{Event, NewEvent, placed};
use agentd_core::id::{Incarnation, TryId};
use agentd_failpoint as failpoint;
use agentd_runtime::driver::{Journal, JournalError};
use agentd_store::{Ack, Append, DraftChunk, Error, Fence, Source, SqliteStore, Store as _};
use async_trait::async_trait;

/// The right to write one agent's journal, and the counter that makes a repeated append harmless.
pub struct StoreJournal {
    pub store: SqliteStore,
    pub fence: Fence,
    pub incarnation: Incarnation,
    /// Appends of this incarnation so far.
    pub appends: u64,
}

#[async_trait]
impl Journal for StoreJournal {
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        for event in &events {
            failpoint::hit("before", event.body.kind().name());
        }
        self.appends += 1;
        let append = Append {
            source: Some(Source {
                incarnation: self.incarnation,
                n: self.appends,
            }),
            ends,
            ..Append::new(self.fence, events.clone())
        };
        let first = match self.store.append(append).await.map_err(broken)? {
            Ack::Committed { first, .. } => first,
            Ack::Repeated {
                place: Some((first, _)),
            } => first,
            Ack::Repeated { place: None } => {
                let text = "the store treated a new append as a repetition".to_owned();
                return Err(JournalError::Broken(text));
            }
        };
        let placed = placed(events, self.fence.agent, first);
        for event in &placed {
            failpoint::hit("after", event.kind().name());
        }
        Ok(placed)
    }

    async fn write_draft(
        &mut self,
        request: TryId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), JournalError> {
        let chunk = DraftChunk {
            request,
            offset,
            bytes,
        };
        failpoint::hit("before", "draft");
        let kept = self.store.write_draft(self.fence, chunk).await;
        kept.map_err(broken)?;
        failpoint::hit("after", "draft");
        Ok(())
    }
}

fn broken(error: Error) -> JournalError {
    match error {
        Error::StaleFence { .. } | Error::StaleIncarnation { .. } => {
            JournalError::Superseded(error.to_string())
        }
        error => JournalError::Broken(error.to_string()),
    }
}
