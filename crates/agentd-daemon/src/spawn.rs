//! Tasks of the daemon. If one panics, the daemon logs it, clears its in-progress flags, and restarts it if it must
//! run.
//!
//! - [`caught`]: work inside a task whose clean-up must run even if the work panics.
//! - [`spawn`]: work that ends by itself. Its caller is told if it panicked.
//! - [`blocking`]: work that blocks, on a thread of its own.
//! - [`keep`]: work that runs for as long as the daemon does. It is restarted if it panics.

use crate::ending::{Ending, left};
use agentd_failpoint as failpoint;
use futures_util::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

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

/// One permit for each piece of blocking work.
static BLOCKING: Semaphore = Semaphore::const_new(MOST_BLOCKING as usize);
const MOST_BLOCKING: u32 = 4096;

/// Work that blocks, for example on a disk. If it panics, the caller panics.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // The semaphore is never closed, so this does not fail.
    let permit = BLOCKING.acquire().await;
    let work = move || {
        let done = work();
        drop(permit);
        done
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The daemon has ended, and the caller with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Waits until no blocking work runs, and keeps new work from beginning, because it could change files of the next
/// daemon.
pub async fn end_blocking(at_most: Duration) {
    let all = BLOCKING.acquire_many(MOST_BLOCKING);
    match tokio::time::timeout(at_most, all).await {
        Ok(Ok(all)) => all.forget(),
        _ => tracing::warn!("the daemon ends while a file operation is in progress"),
    }
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

#[cfg(test)]
mod tests {
    use super::{Died, blocking, caught, keep, spawn};
    use crate::ending::Ending;
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
    async fn a_panic_of_blocking_work_is_one_of_its_caller() {
        assert_eq!(blocking(|| 7).await, 7);
        let died = caught("a test", blocking(|| panic!("on purpose")));
        assert_eq!(died.await, Err::<(), _>(Died));
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
