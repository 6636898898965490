//! Work that blocks, away from the loop, and let go of when the call is cancelled.

use super::failure::{Failure, said};
use agentd_core::message::CallOutcome;
use agentd_core::turn::Finished;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Whether the call is to end.
#[derive(Clone)]
pub(super) struct Cancelled(watch::Receiver<bool>);

impl Cancelled {
    pub const fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    pub fn now(&self) -> bool {
        *self.0.borrow()
    }

    /// Comes back when it is. Once nobody can say so any more, never.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// For the worker: whether anybody still waits for it, and how long it may take.
#[derive(Clone, Default)]
pub(super) struct Stop {
    nobody_waits: Arc<AtomicBool>,
    late_at: Option<Instant>,
}

impl Stop {
    /// The same, and a limit for what is done from now on.
    pub fn within(&self, limit: Duration) -> Self {
        Self {
            nobody_waits: Arc::clone(&self.nobody_waits),
            late_at: Instant::now().checked_add(limit),
        }
    }

    pub fn is_late(&self) -> bool {
        self.late_at.is_some_and(|late| Instant::now() >= late)
    }

    /// An error once the worker is to stop.
    pub fn check(&self) -> io::Result<()> {
        if self.nobody_waits.load(Ordering::Relaxed) {
            return Err(io::Error::other("nobody waits for it"));
        }
        match self.is_late() {
            true => Err(io::Error::other("it takes too long")),
            false => Ok(()),
        }
    }
}

/// Sets it when whoever waits goes away, for whatever reason.
struct OnDrop(Stop);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.nobody_waits.store(true, Ordering::Relaxed);
    }
}

/// Does work that only reads. When the call is cancelled it is not waited for.
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

/// Does work to its end.
pub(super) async fn whole<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|_| broken())
}

pub(super) fn interrupted() -> Finished {
    said(CallOutcome::Interrupted, "Interrupted before it was done.")
}

pub(super) fn broken() -> Failure {
    Failure::new("The tool broke off inside agentd; this is a fault of agentd.")
}
