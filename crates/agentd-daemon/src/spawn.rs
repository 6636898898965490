//! Tasks of the daemon. If one panics, the daemon logs it, clears its in-progress flags, and restarts it if it must
//! run.
//!
//! - [`caught`]: work inside a task whose clean-up must run even if the work panics.
//! - [`spawn`]: work that ends by itself. Its caller is told if it panicked.
//! - [`keep`]: work that runs for as long as the daemon does. It is restarted if it panics.
//! - [`Daemon::work_on`]: work on one agent whose handle has an in-progress flag for it.

use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::daemon::{Daemon, Ending, left};
use agentd_failpoint as failpoint;
use futures_util::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// Delay before work that panicked is started again; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The work panicked. The log has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Died;

/// Does the work. A panic ends the work, not the task that called this.
///
/// Locks that the work held are released. An agent that it had locked is reloaded from the journal.
pub async fn caught<T>(name: &'static str, work: impl Future<Output = T>) -> Result<T, Died> {
    if failpoint::injected_bug("panic_unnoticed") {
        return Ok(work.await);
    }
    // Everything that the work shares with others is behind a lock or a channel.
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => Ok(done),
        Err(panic) => {
            tracing::error!(task = name, panic = text(&*panic), "daemon task panicked");
            Err(Died)
        }
    }
}

/// Whether this task is panicking.
pub fn is_dying() -> bool {
    std::thread::panicking() && !failpoint::injected_bug("panic_unnoticed")
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

/// Work that ends by itself.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<Result<T, Died>> {
    tokio::spawn(caught(name, work))
}

/// Work that runs until it returns or the daemon ends. If it panics it is started again.
pub fn keep<F>(
    name: &'static str,
    mut ending: watch::Receiver<Ending>,
    mut work: impl FnMut() -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        let mut pause = PAUSE;
        while caught(name, work()).await.is_err() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = left(&mut ending) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    })
}

impl Daemon {
    /// Work on one agent. If it panics, `undo` clears its in-progress flag, and reconcile starts the work again if it
    /// is still needed.
    pub fn work_on(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
        undo: impl FnOnce(&mut AgentGuard<'_>) + Send + 'static,
    ) -> AbortHandle {
        let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
        let task = tokio::spawn(async move {
            if caught(name, work).await.is_err() {
                tokio::time::sleep(PAUSE).await;
                let mut guard = handle.lock().await;
                undo(&mut guard);
                guard.changed();
                daemon.reconcile(&handle, &mut guard);
            }
        });
        task.abort_handle()
    }

    /// Reconciles an agent again after a delay, because an append failed.
    pub fn look_again(self: &Arc<Self>, handle: &Arc<AgentHandle>) {
        let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
        spawn("delayed reconcile", async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut guard = handle.lock().await;
            daemon.reconcile(&handle, &mut guard);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Died, caught, keep, spawn};
    use crate::daemon::Ending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::watch;

    #[tokio::test]
    async fn work_that_panics_is_reported_and_its_caller_continues() {
        let died = caught("a test", async { panic!("on purpose") });
        assert_eq!(died.await, Err::<(), _>(Died));
        assert_eq!(spawn("a test", async { 7 }).await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn work_that_is_needed_for_good_is_begun_again_until_it_is_done() {
        let (_ending, not_ending) = watch::channel(Ending::No);
        let begun = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&begun);
        let kept = keep("a test", not_ending, move || {
            let n = counted.fetch_add(1, Ordering::Relaxed);
            async move { assert!(n >= 2, "on purpose") }
        });
        kept.await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_daemon_that_leaves_begins_nothing_again() {
        let (_ending, is_leaving) = watch::channel(Ending::Leaves);
        keep("a test", is_leaving, || async { panic!("on purpose") })
            .await
            .unwrap();
    }
}
