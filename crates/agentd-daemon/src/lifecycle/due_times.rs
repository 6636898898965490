//! Waits for due times: those of schedules and of idle resets. The store lists them, so they survive a restart.

use crate::clock;
use crate::daemon::Daemon;
use crate::ending::{Ending, left};
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Delay before a failed attempt is repeated.
const TROUBLE: Duration = Duration::from_secs(30);

/// An agent, and when it is due.
pub type Due = (AgentId, Timestamp);

/// The attempts of the last moments, by agent and due time: a later due time of the same agent is another entry.
pub type Tried = HashMap<Due, Instant>;

pub struct DueTimes {
    tried: Tried,
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
            tried: Tried::new(),
            ending: daemon.ending(),
        }
    }

    /// What is not tried again yet.
    pub fn tried(&mut self) -> &Tried {
        self.tried.retain(|_, since| since.elapsed() < TROUBLE);
        &self.tried
    }

    /// Delays the next attempt. If this one succeeded, the store no longer lists its due time.
    pub fn has_tried(&mut self, due: Due) {
        self.tried.insert(due, Instant::now());
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
