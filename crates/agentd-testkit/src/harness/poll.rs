//! Waiting for a condition, with a time limit.

use std::time::{Duration, Instant};

/// How often a condition is checked, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    pub interval: Duration,
    pub limit: Duration,
}

/// The condition was not met in time.
#[derive(Debug, thiserror::Error)]
#[error("waited in vain for {what}")]
pub struct TimedOut {
    pub what: String,
}

impl Poll {
    pub const fn new(interval: Duration, limit: Duration) -> Self {
        Self { interval, limit }
    }

    /// Waits until the closure returns a value. It is called at least once, even if the limit is zero.
    pub fn until<T>(self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, TimedOut> {
        let begin = Instant::now();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if begin.elapsed() >= self.limit {
                let what = what.to_owned();
                return Err(TimedOut { what });
            }
            // tidy: polls
            std::thread::sleep(self.interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_returns_what_is_found() {
        let poll = Poll::new(Duration::ZERO, Duration::from_secs(60));
        let mut looks = 0;
        let found = poll.until("the third look", || {
            looks += 1;
            (looks == 3).then_some("found")
        });
        assert_eq!(found.unwrap(), "found");
    }

    #[test]
    fn it_looks_once_even_without_time_and_names_what_it_waited_for() {
        let poll = Poll::new(Duration::ZERO, Duration::ZERO);
        assert!(poll.until("a value", || Some(())).is_ok());
        let error = poll.until("the end", || None::<()>).unwrap_err();
        assert_eq!(error.to_string(), "waited in vain for the end");
    }
}
