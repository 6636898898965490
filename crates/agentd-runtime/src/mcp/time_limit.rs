//! The time limit of one call. Progress starts it again, and it stands still while the user is asked.

use std::time::Duration;
use tokio::time::Instant;

/// A server that reports progress may take this many times its time limit.
const MOST_TIMES: u32 = 10;

pub(super) struct TimeLimit {
    limit: Duration,
    /// When it ends without further progress.
    idle: Instant,
    /// When it ends in any case.
    last: Instant,
    /// The user has been asked since then, and both stand still.
    paused: Option<Instant>,
}

impl TimeLimit {
    pub fn new(now: Instant, limit: Duration) -> Self {
        Self {
            limit,
            idle: now + limit,
            last: now + limit.saturating_mul(MOST_TIMES),
            paused: None,
        }
    }

    pub fn progress(&mut self, now: Instant) {
        // What passes until the answer is added later.
        self.idle = self.paused.unwrap_or(now) + self.limit;
    }

    pub fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    pub fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused.take() {
            let waited = now.saturating_duration_since(since);
            (self.idle, self.last) = (self.idle + waited, self.last + waited);
        }
    }

    /// When the call has taken too long; none while the user is asked.
    pub fn ends_at(&self) -> Option<Instant> {
        self.paused.is_none().then(|| self.idle.min(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(120);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_time_of_a_call_stands_still_while_the_user_is_asked() {
        let begin = Instant::now();
        let mut time = TimeLimit::new(begin, LIMIT);
        time.pause(begin + seconds(1));
        assert_eq!(time.ends_at(), None);
        // A second question of the same call does not begin it anew.
        time.pause(begin + seconds(60));
        time.resume(begin + seconds(3601));
        // The server has the 119 s that were left.
        assert_eq!(time.ends_at(), Some(begin + seconds(3601 + 119)));
        time.resume(begin + seconds(4000));
        assert_eq!(time.ends_at(), Some(begin + seconds(3601 + 119)));
    }

    #[test]
    fn progress_starts_the_limit_again_up_to_ten_times() {
        let begin = Instant::now();
        let mut time = TimeLimit::new(begin, LIMIT);
        time.progress(begin + seconds(100));
        assert_eq!(time.ends_at(), Some(begin + seconds(220)));
        time.pause(begin + seconds(110));
        time.progress(begin + seconds(150));
        time.resume(begin + seconds(210));
        assert_eq!(time.ends_at(), Some(begin + seconds(330)));
        time.progress(begin + seconds(1290));
        // The user was asked for 100 s.
        assert_eq!(time.ends_at(), Some(begin + seconds(1300)));
    }
}
