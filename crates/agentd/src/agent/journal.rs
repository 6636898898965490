//! The runtime's journal, in a store that this process has open itself.

use agentd_core::event::{Body, Event, NewEvent, Purged, placed};
use agentd_core::id::{Incarnation, TryId};
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_runtime::driver::{Journal, JournalError};
use agentd_store::{
    Ack, Append, DraftChunk, Error, Fence, KeepFiles, Source, SqliteStore, Store as _,
};
use async_trait::async_trait;

/// The right to write one agent's journal, and the counter that makes a repeated append harmless.
pub struct StoreJournal {
    pub store: SqliteStore,
    pub fence: Fence,
    pub incarnation: Incarnation,
    /// Appends of this incarnation so far.
    pub appends: u64,
    pub files: KeptFiles,
}

/// How much of the history of files is kept, and the limits.
#[derive(Clone, Copy, Debug)]
pub struct KeptFiles {
    pub kept_bytes: u64,
    pub limit: u64,
    /// What is left when the limit was exceeded.
    pub left: u64,
}

impl KeptFiles {
    pub fn of(state: &AgentState) -> Self {
        let limits = &state.spec.limits;
        Self {
            kept_bytes: state.files.kept_bytes,
            limit: limits.file_history_bytes(),
            left: limits.file_history_left(),
        }
    }

    fn count(&mut self, events: &[Event]) {
        for event in events {
            self.kept_bytes = match &event.body {
                Body::ToolStarted(started) => self.kept_bytes.saturating_add(started.kept_bytes()),
                Body::Purged(Purged {
                    files: Some(files), ..
                }) => self.kept_bytes.saturating_sub(files.bytes),
                _ => continue,
            };
        }
    }
}

impl StoreJournal {
    /// Deletes the oldest contents of files if more than the limit is kept.
    async fn limit_files(&mut self, at: Timestamp) -> Option<Event> {
        if self.files.kept_bytes <= self.files.limit {
            return None;
        }
        let keep = KeepFiles {
            bytes: self.files.left,
            largest: self.files.limit,
        };
        let purged = self.store.purge_files(self.fence, keep, at);
        // The next append tries it again.
        let purged = purged.await.inspect_err(|error| {
            tracing::warn!(%error, "old contents of files not deleted");
        });
        purged.ok().flatten()
    }
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
        let mut placed = placed(events, self.fence.agent, first);
        for event in &placed {
            failpoint::hit("after", event.kind().name());
        }
        self.files.count(&placed);
        if let Some(at) = placed.last().map(|event| event.at) {
            let purged = self.limit_files(at).await;
            self.files.count(purged.as_slice());
            placed.extend(purged);
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
        kept.map_err(|error| match error {
            Error::TooLarge { .. } => JournalError::DraftRefused(error.to_string()),
            error => broken(error),
        })?;
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
