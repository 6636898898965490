//! Which of the due times that a store lists is handled next. An attempt that failed is repeated after a while, and hides no
//! other due time meanwhile.
//!
//! Only a failure delays a due time. An agent whose queue was full is due again at the same time as soon as it has room: if
//! the attempt before counted against it, it would stay behind, and for as long as a clock that was set back stays behind.

use crate::id::AgentId;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// An agent, and when it is due.
pub type Due = (AgentId, Timestamp);

/// Delay before an attempt that failed is repeated.
const FAILED_MS: u64 = 30_000;
/// The same if there was nothing to do, because the agent has changed since the store listed it.
const NOTHING_MS: u64 = 1_000;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// At least one due time was handled.
    Handled,
    Nothing,
    Failed,
}

/// The attempts of the last moments, by agent and due time: a later due time of the same agent is another entry.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    delayed: BTreeMap<Due, Delay>,
}

#[derive(Clone, Copy, Debug)]
struct Delay {
    /// On the steady clock.
    since_ms: u64,
    for_ms: u64,
}

impl Attempts {
    /// Forgets delays that are over. `steady_ms` is the time of a clock that does not go back. If it does nevertheless, as
    /// under a simulated clock, no delay is believed.
    pub fn advance(&mut self, steady_ms: u64) {
        self.delayed.retain(|_, delay| {
            let passed = steady_ms.checked_sub(delay.since_ms);
            passed.is_some_and(|passed| passed < delay.for_ms)
        });
    }

    /// How many due times are delayed. So many more must be listed, or they would hide all others.
    pub fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// The first of these due times that is not delayed.
    pub fn first(&self, listed: impl IntoIterator<Item = Due>) -> Option<Due> {
        let mut listed = listed.into_iter();
        listed.find(|due| !self.delayed.contains_key(due))
    }

    /// Records how the attempt to handle a due time ended.
    pub fn ended(&mut self, due: Due, attempt: Attempt, steady_ms: u64) {
        let for_ms = match attempt {
            Attempt::Handled => return,
            Attempt::Nothing => NOTHING_MS,
            Attempt::Failed => FAILED_MS,
        };
        let since_ms = steady_ms;
        self.delayed.insert(due, Delay { since_ms, for_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(agent: u8, at: i64) -> Due {
        (AgentId::from_bytes([agent; 16]), Timestamp::from_millis(at))
    }

    #[test]
    fn a_failure_delays_its_due_time_only() {
        let mut attempts = Attempts::default();
        attempts.ended(due(1, 5), Attempt::Failed, 100);
        let listed = [due(1, 5), due(2, 5), due(1, 6)];
        assert_eq!(attempts.first(listed), Some(due(2, 5)));
        assert_eq!(attempts.first([due(1, 5)]), None);
        attempts.advance(100 + FAILED_MS - 1);
        assert_eq!((attempts.delayed(), attempts.first([due(1, 5)])), (1, None));
        attempts.advance(100 + FAILED_MS);
        assert_eq!(attempts.first([due(1, 5)]), Some(due(1, 5)));
    }

    /// Regression: an agent whose queue was full after some of its firings waited for 30 s when it had room again, and for
    /// as long as the clock was behind if that had been set back.
    #[test]
    fn a_due_time_that_is_left_after_others_were_handled_is_not_delayed() {
        let mut attempts = Attempts::default();
        attempts.ended(due(1, 5), Attempt::Handled, 100);
        assert_eq!(attempts.first([due(1, 5)]), Some(due(1, 5)));
        // A daemon that does nothing in a loop would be worse.
        attempts.ended(due(1, 5), Attempt::Nothing, 100);
        assert_eq!(attempts.first([due(1, 5)]), None);
        attempts.advance(100 + NOTHING_MS);
        assert_eq!(attempts.first([due(1, 5)]), Some(due(1, 5)));
    }

    /// Regression: such a due time was not tried again before the clock had caught up.
    #[test]
    fn a_steady_clock_that_went_back_delays_nothing() {
        let mut attempts = Attempts::default();
        attempts.ended(due(1, 5), Attempt::Failed, 3_600_000);
        attempts.advance(0);
        assert_eq!(attempts.first([due(1, 5)]), Some(due(1, 5)));
    }
}
