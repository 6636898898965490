//! One agent in use, and the daemon that it belongs to.
//!
//! Everything that is written to an agent's journal goes through its handle, one append at a time. So a decision made
//! from the state is still valid when it is written.

mod guard;
mod held;

pub use guard::AgentGuard;

use super::{Agent, Daemon};
use crate::spawn::{caught, spawn};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Delay before work that panicked is started again.
const PAUSE: Duration = Duration::from_millis(100);
/// Delay before an agent is reconciled again, because an append failed.
const TROUBLE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct AgentHandle {
    pub daemon: Arc<Daemon>,
    agent: Arc<Agent>,
}

impl Deref for AgentHandle {
    type Target = Agent;

    fn deref(&self) -> &Agent {
        &self.agent
    }
}

impl AgentHandle {
    pub(super) const fn new(daemon: Arc<Daemon>, agent: Arc<Agent>) -> Self {
        Self { daemon, agent }
    }

    pub(super) const fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    pub async fn lock(&self) -> AgentGuard<'_> {
        let mut guard = AgentGuard {
            handle: self,
            inner: self.agent.inner.lock().await,
        };
        if guard.stale {
            guard.reload().await;
        }
        guard
    }

    /// Calls `look` after each change of the agent, until it returns a value.
    pub async fn until<T>(&self, mut look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>) -> T {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&mut self.lock().await) {
                return found;
            }
            // The agent owns the sender, so this cannot fail.
            let _never = changes.changed().await;
        }
    }

    /// The same with a timeout.
    pub async fn within<T>(
        &self,
        at_most: Duration,
        look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>,
    ) -> Option<T> {
        tokio::time::timeout(at_most, self.until(look)).await.ok()
    }

    /// Spawns work on the agent that has an in-progress flag. If the work panics, `undo` clears the flag, and the
    /// supervisor starts the work again if it is still needed.
    pub fn work_on(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
        undo: impl FnOnce(&mut AgentGuard<'_>) + Send + 'static,
    ) -> AbortHandle {
        let handle = self.clone();
        let task = spawn(name, async move {
            if caught(name, work).await.is_err() {
                tokio::time::sleep(PAUSE).await;
                let mut guard = handle.lock().await;
                undo(&mut guard);
                guard.changed();
                guard.reconcile();
            }
        });
        task.abort_handle()
    }

    /// Reconciles the agent again after a delay, because an append failed.
    pub fn look_again(&self) {
        let handle = self.clone();
        spawn("delayed reconcile", async move {
            tokio::time::sleep(TROUBLE).await;
            handle.lock().await.reconcile();
        });
    }
}
