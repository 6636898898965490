//! The turn's time limit on the monotonic clock. The wall clock is used once, when this process first sees the turn,
//! to compute how much of the limit is left; changing it later has no effect.

use agentd_core::id::TurnId;
use agentd_core::time::Timestamp;
use agentd_core::turn::Deadline;
use std::time::Duration;
use tokio::time::Instant;

/// A longer wait is split into parts: a limit may be larger than the clock can represent.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// When this process first saw a turn, by both clocks.
struct Anchor {
    turn: TurnId,
    at: Timestamp,
    instant: Instant,
}

#[derive(Default)]
pub struct TurnClock {
    anchor: Option<Anchor>,
}

impl TurnClock {
    /// When the time is up; `now` and `instant` are the same moment on the two clocks.
    pub fn wake_at(&mut self, deadline: &Deadline, now: Timestamp, instant: Instant) -> Wake {
        let anchor = match &mut self.anchor {
            Some(anchor) if anchor.turn == deadline.turn => anchor,
            anchor => anchor.insert(Anchor {
                turn: deadline.turn,
                at: now,
                instant,
            }),
        };
        let left = Duration::from_millis(deadline.at.since(anchor.at));
        match anchor.instant.checked_add(left) {
            Some(at) => Wake::TimeUp(at),
            None => Wake::LookAgain(instant + LONGEST),
        }
    }
}

pub enum Wake {
    TimeUp(Instant),
    LookAgain(Instant),
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::LimitKind;
    use uuid::Uuid;

    fn deadline(turn: u128, at: i64) -> Deadline {
        Deadline {
            turn: TurnId::new(Uuid::from_u128(turn)),
            at: Timestamp::from_millis(at),
            limit: LimitKind::TurnTime,
        }
    }

    /// How much is left, by either clock's moment.
    fn left_ms(clock: &mut TurnClock, at: &Deadline, now: i64, instant: Instant) -> u128 {
        match clock.wake_at(at, Timestamp::from_millis(now), instant) {
            Wake::TimeUp(at) => at.saturating_duration_since(instant).as_millis(),
            Wake::LookAgain(_) => u128::MAX,
        }
    }

    #[test]
    fn the_wall_clock_counts_once_for_each_turn() {
        let (mut clock, start) = (TurnClock::default(), Instant::now());
        let later = start + Duration::from_millis(1_500);
        let first = deadline(1, 5_000);
        assert_eq!(left_ms(&mut clock, &first, 1_000, start), 4_000);
        // Set back by an hour, or ahead: it changes nothing.
        assert_eq!(left_ms(&mut clock, &first, -3_600_000, later), 2_500);
        assert_eq!(left_ms(&mut clock, &first, 3_600_000, later), 2_500);
        // The turn waited for a person for two seconds.
        let first = deadline(1, 7_000);
        assert_eq!(left_ms(&mut clock, &first, 3_000, later), 4_500);
        // One that has had its time already, in a process before this one.
        assert_eq!(left_ms(&mut clock, &deadline(2, 7_000), 9_000, later), 0);
    }
}
