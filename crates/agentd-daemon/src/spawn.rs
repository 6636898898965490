//! Tasks of the daemon. One that panics is noticed: the log names it, what it left undone is undone, and what has
//! to run is run again.
//!
//! - [`caught`]: work inside of a task whose clean-up must run however the work ends.
//! - [`spawn`]: work that ends by itself. Whoever waits for it hears that it died.
//! - [`keep`]: work that runs for as long as the daemon does: started again when it dies.
//! - [`Daemon::work_on`]: work on one agent, which says in its state that it is under way.

use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::daemon::{Daemon, Ending, left};
use agentd_process::failpoint;
use futures_util::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// Before work that died is done again; doubled each time that it dies.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The work panicked. The log says where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Died;

/// Does the work; a panic ends the work, and not the task that called this.
///
/// What the work had locked is let go of. An agent that it had locked is read again from the journal.
pub async fn caught<T>(name: &'static str, work: impl Future<Output = T>) -> Result<T, Died> {
    if failpoint::injected_bug("panic_unnoticed") {
        return Ok(work.await);
    }
    // Nothing is shared with the work but what has a lock, or a channel, of its own.
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => Ok(done),
        Err(panic) => {
            tracing::error!(
                task = name,
                panic = text(&*panic),
                "a task of the daemon died"
            );
            Err(Died)
        }
    }
}

/// Whether this task panics right now.
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

/// Work that runs until the daemon leaves, or is done. If it dies it is begun again.
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
    /// Work on one agent. If it dies, `undo` takes back what says that it is under way, and the agent is looked at
    /// again, which begins the work anew where it is still needed.
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

    /// Looks at an agent again in a while: something could not be written.
    pub fn look_again(self: &Arc<Self>, handle: &Arc<AgentHandle>) {
        let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
        spawn("another look at an agent", async move {
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
    async fn work_that_panics_is_told_of_and_its_caller_goes_on() {
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
