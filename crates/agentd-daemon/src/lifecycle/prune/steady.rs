//! Whether the clock is steady enough to delete by it what is old.

use agentd_core::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How far the clock may move beyond the time that has passed.
const MOST: Duration = Duration::from_secs(3600);
/// How long the clock does not count after it was set forward.
const PAUSE: Duration = Duration::from_secs(24 * 3600);

/// The clock beside the time since the machine's boot, which cannot be set, as they were last read.
pub struct Steady {
    wall: Timestamp,
    up: Duration,
    /// The clock counts again from this time since the boot.
    counts_from: Duration,
}

impl Steady {
    pub const fn new(wall: Timestamp, up: Duration) -> Self {
        Self {
            wall,
            up,
            counts_from: Duration::ZERO,
        }
    }

    /// Reads both again. Returns whether the clock was not set forward lately.
    pub fn holds(&mut self, wall: Timestamp, up: Duration) -> bool {
        let moved = Duration::from_millis(wall.since(self.wall));
        let passed = up.saturating_sub(self.up);
        if moved > passed.saturating_add(MOST) {
            self.counts_from = up.saturating_add(PAUSE);
        }
        (self.wall, self.up) = (wall, up);
        up >= self.counts_from
    }
}

/// The time since the machine's boot, with the time that it slept.
pub fn up() -> Duration {
    let up = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(up.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(up.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: u64 = 3600;

    fn hours(hours: u64) -> (Timestamp, Duration) {
        let up = Duration::from_secs(hours * HOUR_S);
        (Timestamp::default().plus(hours * HOUR_S * 1000), up)
    }

    #[test]
    fn a_clock_that_was_set_forward_counts_again_after_a_day() {
        let (wall, up) = hours(1);
        let mut steady = Steady::new(wall, up);
        // The machine may sleep for a month.
        for n in [2, 3, 800] {
            let (wall, up) = hours(n);
            assert!(steady.holds(wall, up), "{n}");
        }
        let ahead = |n| {
            let (wall, up) = hours(n);
            (wall.plus(48 * HOUR_S * 1000), up)
        };
        for n in [801, 802, 824] {
            let (wall, up) = ahead(n);
            assert!(!steady.holds(wall, up), "{n}");
        }
        let (wall, up) = ahead(825);
        assert!(steady.holds(wall, up));
        // Set back: what is old has become younger.
        let (wall, up) = hours(826);
        assert!(steady.holds(wall, up));
    }

    #[test]
    fn the_time_since_the_boot_goes_on() {
        let before = up();
        assert!(before > Duration::ZERO && up() >= before);
    }
}
