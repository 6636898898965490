//! A purge, and then the log: what was deleted must not be readable there either.

use super::group::{Failure, Written};
use super::{Databases, Reply, Thread, append, reopen};
use crate::error::{Disk, Error, Result};
use crate::sqlite::{drafts, purge};
use crate::store::{Ack, Append, Fence, Purge};
use agentd_core::event::{NewEvent, Purged};
use agentd_core::id::ConversationId;
use agentd_core::time::Timestamp;
use std::time::{Duration, Instant};

/// How long to wait for readers to let go of the log.
const WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// A purge that is committed, and whose traces in the log are still to go.
pub(super) struct Scrub {
    purge: Purge,
    reply: Reply<Purge>,
    deadline: Instant,
}

impl Scrub {
    pub fn new(purge: Purge, reply: Reply<Purge>) -> Self {
        Self {
            purge,
            reply,
            deadline: Instant::now() + WAIT,
        }
    }
}

/// Deletes the words and says so in the journal, in one transaction.
pub(super) fn purge(
    thread: &mut Thread,
    databases: &Databases,
    fence: Fence,
    conversation: ConversationId,
    at: Timestamp,
) -> Result<(Purge, Written)> {
    let plain = |failure| match failure {
        Failure::Refused(error) => error,
        Failure::Disk(disk) => Error::NotCommitted(disk),
    };
    let entry = thread.entry(databases, fence).map_err(plain)?;
    let deleted = purge::delete(databases, &entry.state, conversation)?;
    // Drafts may be gone: where they stop is to be read again.
    entry.draft = drafts::stops_at(&databases.journal, entry.num)?;
    let event = NewEvent {
        at,
        conversation: entry.state.tree.current().unwrap_or(conversation),
        turn: None,
        body: Purged {
            conversation,
            events: deleted.events,
        }
        .into(),
    };
    let note = append::prepare(Append::new(fence, vec![event]))?;
    match append::apply(thread, databases, note).map_err(plain)? {
        (Ack::Committed { last, .. }, Some(written)) => {
            let purge = Purge {
                events: deleted.events,
                blobs: deleted.blobs,
                seq: last,
            };
            Ok((purge, written))
        }
        // It has no counter, so it repeats nothing.
        _ => Err(Error::Closed),
    }
}

impl Thread {
    /// Tries once to empty the log, without waiting for anybody.
    pub(super) fn scrub(&mut self) {
        let done = match self.take_databases() {
            Ok(databases) => {
                let done = empty_log_now(&databases, self.options.lock_timeout);
                self.databases = Some(databases);
                done
            }
            Err(disk) => Err(disk),
        };
        match done {
            Ok(true) => {
                for scrub in self.scrubs.drain(..) {
                    let _gone = scrub.reply.send(Ok(scrub.purge));
                }
            }
            Ok(false) => self.scrub_later(&Disk::Locked),
            Err(disk) => self.scrub_later(&disk),
        }
    }

    /// Not this time; whoever has waited for too long hears why.
    fn scrub_later(&mut self, why: &Disk) {
        let now = Instant::now();
        for late in self.scrubs.extract_if(.., |scrub| scrub.deadline < now) {
            let _gone = late.reply.send(Err(Error::NotScrubbed(why.clone())));
        }
        std::thread::sleep(PAUSE);
    }
}

fn empty_log_now(databases: &Databases, lock_timeout: Duration) -> Result<bool, Disk> {
    let journal = &databases.journal;
    journal
        .busy_timeout(Duration::ZERO)
        .map_err(Disk::from_sqlite)?;
    let emptied = reopen::empty_log(journal).map_err(Disk::from_sqlite);
    journal
        .busy_timeout(lock_timeout)
        .map_err(Disk::from_sqlite)?;
    emptied
}
