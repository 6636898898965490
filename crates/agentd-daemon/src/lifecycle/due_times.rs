//! Waits for due times: those of schedules and of idle resets. The store lists them, so they survive a restart.

use crate::clock;
use crate::daemon::Daemon;
use crate::ending::{Ending, left};
use agentd_core::schedule::{Attempt, Attempts, Due};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

pub struct DueTimes {
    attempts: Attempts,
    /// The steady clock of the attempts counts from here.
    since: Instant,
    ending: watch::Receiver<Ending>,
}

/// Why a wait has ended.
pub enum Waited {
    /// The time has come.
    Due(Due),
    /// The list may have changed.
    Changed,
    DaemonEnds,
}

impl DueTimes {
    pub fn new(daemon: &Daemon) -> Self {
        Self {
            attempts: Attempts::default(),
            since: Instant::now(),
            ending: daemon.ending(),
        }
    }

    /// What is not tried again yet.
    pub fn attempts(&mut self) -> &Attempts {
        let now = self.steady_ms();
        self.attempts.advance(now);
        &self.attempts
    }

    pub fn ended(&mut self, due: Due, attempt: Attempt) {
        let now = self.steady_ms();
        self.attempts.ended(due, attempt, now);
    }

    fn steady_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits for the next due time, until the list changes, but not longer than `longest`, because the clock may be set
    /// and the machine may sleep.
    pub async fn wait(&mut self, next: Option<Due>, longest: Duration, changed: &Notify) -> Waited {
        let now = clock::now();
        let wait = match next {
            Some(due) if due.1 <= now => return Waited::Due(due),
            Some((_, at)) => Duration::from_millis(at.since(now)).min(longest),
            None => longest,
        };
        tokio::select! {
            // tidy: polls nothing; this is the time until the next due time
            () = tokio::time::sleep(wait) => Waited::Changed,
            () = changed.notified() => Waited::Changed,
            () = left(&mut self.ending) => Waited::DaemonEnds,
        }
    }
}
