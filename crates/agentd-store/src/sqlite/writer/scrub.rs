//! Empties the log after a purge: deleted text must not be readable there either.

use super::Thread;
use super::waiting::Waiting;
use crate::error::{Disk, Result};
use crate::sqlite::connect;
use crate::sqlite::purge::Deleted;
use crate::sqlite::readers::Databases;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(2);

/// A purge whose text is deleted from the database file, but still in the log.
pub(super) struct Scrub {
    deleted: Deleted,
    waiting: Option<Waiting>,
}

impl Scrub {
    pub fn new(deleted: Deleted, waiting: Option<Waiting>) -> Self {
        Self { deleted, waiting }
    }
}

impl Thread {
    /// Tries once to empty the log, without waiting for readers.
    pub(super) fn scrub(&mut self) {
        let why = match self.empty_log_now() {
            Ok(true) => {
                for scrub in self.scrubs.drain(..) {
                    if let Some(waiting) = scrub.waiting {
                        waiting.done(scrub.deleted);
                    }
                }
                return;
            }
            Ok(false) => Disk::Locked,
            Err(disk) => disk,
        };
        // The log could not be emptied yet. Callers that have waited too long get the reason.
        for scrub in &mut self.scrubs {
            if let Some(late) = scrub.waiting.take_if(|waiting| waiting.is_late()) {
                late.give_up(why.clone());
            }
        }
        self.pause();
    }

    /// Moves the log into the file, unless a reader prevents it.
    pub(super) fn empty_log_now(&mut self) -> Result<bool, Disk> {
        let databases = self.take_databases()?;
        let done = empty_log_now(&databases, self.options.lock_timeout);
        self.databases = Some(databases);
        done
    }

    /// Leaves the disk, or the log, to other threads for a moment.
    pub(super) fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}

fn empty_log_now(databases: &Databases, lock_timeout: Duration) -> Result<bool, Disk> {
    let journal = &databases.journal;
    journal
        .busy_timeout(Duration::ZERO)
        .map_err(Disk::from_sqlite)?;
    let emptied = connect::empty_log(journal).map_err(Disk::from_sqlite);
    journal
        .busy_timeout(lock_timeout)
        .map_err(Disk::from_sqlite)?;
    emptied
}
