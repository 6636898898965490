//! Blocking work, on threads of its own. When the call is cancelled, read-only work is no longer waited for.

use super::failure::{Failure, said};
use agentd_core::message::CallOutcome;
use agentd_core::turn::Finished;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Whether the call was cancelled.
#[derive(Clone)]
pub(super) struct Cancelled(watch::Receiver<bool>);

impl Cancelled {
    pub const fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    pub fn now(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the call is cancelled. If the sender is gone without that, it never returns.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// For the worker: whether its call still waits for the result, and the deadline.
#[derive(Clone, Default)]
pub(super) struct Stop {
    abandoned: Arc<AtomicBool>,
    late_at: Option<Instant>,
}

impl Stop {
    /// The same, with a time limit that begins now.
    pub fn within(&self, limit: Duration) -> Self {
        Self {
            abandoned: Arc::clone(&self.abandoned),
            late_at: Instant::now().checked_add(limit),
        }
    }

    pub fn is_late(&self) -> bool {
        self.late_at.is_some_and(|late| Instant::now() >= late)
    }

    /// An error if the worker must stop.
    pub fn check(&self) -> io::Result<()> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(io::Error::other("the call has ended"));
        }
        match self.is_late() {
            true => Err(io::Error::other("it took too long")),
            false => Ok(()),
        }
    }
}

/// Stops the worker when the future that waits for it is dropped.
struct OnDrop(Stop);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Runs work that only reads. When the call is cancelled, this returns without waiting for the work.
pub(super) async fn read<T: Send + 'static>(
    mut cancelled: Cancelled,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Finished> {
    let stop = Stop::default();
    let _guard = OnDrop(stop.clone());
    let work = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        () = cancelled.wait() => Err(interrupted()),
        result = work => result.map_err(|_| broken().into()),
    }
}

/// Runs work to its end.
pub(super) async fn whole<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|_| broken())
}

pub(super) fn interrupted() -> Finished {
    said(CallOutcome::Interrupted, "Interrupted before it finished.")
}

pub(super) fn broken() -> Failure {
    Failure::new("The tool crashed inside agentd; this is a bug in agentd.")
}
