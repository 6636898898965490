//! When the calls of a turn ran that may change files. What changed at another time, the user may have changed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of a file system may be behind by this many milliseconds.
pub(super) const COARSE_MS: i64 = 20;

/// The calls since the last scan.
#[derive(Debug, Default)]
pub(super) struct Spans(Mutex<Vec<Arc<Span>>>);

/// In milliseconds since 1970.
#[derive(Debug)]
pub(super) struct Span {
    began: i64,
    /// `i64::MAX` while the call runs.
    ended: AtomicI64,
}

/// A call that runs. It has ended when this is dropped.
#[derive(Debug)]
#[must_use = "the call ends when this is dropped"]
pub(super) struct Running(Arc<Span>);

impl Spans {
    pub fn begin(&self) -> Running {
        let span = Arc::new(Span {
            began: now(),
            ended: AtomicI64::new(i64::MAX),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&span));
        Running(span)
    }

    /// The next scan begins without them.
    pub fn take(&self) -> Vec<Arc<Span>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

impl Span {
    /// Whether a file that was changed then may have been changed by the call.
    pub fn has(&self, changed: i64) -> bool {
        let ended = self.ended.load(Ordering::Acquire);
        changed.saturating_add(COARSE_MS) >= self.began && changed <= ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ended.store(now(), Ordering::Release);
    }
}

/// Milliseconds since 1970, by the clock of files.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_belongs_to_a_call_that_ran_then() {
        let spans = Spans::default();
        let before = now();
        let running = spans.begin();
        let span = Arc::clone(&running.0);
        assert!(span.has(before) && span.has(i64::MAX - COARSE_MS));
        assert!(!span.has(before - 1000));
        drop(running);
        assert!(span.has(before));
        assert!(!span.has(now() + 1000));
        assert_eq!(spans.take().len(), 1);
        assert!(spans.take().is_empty());
    }
}
