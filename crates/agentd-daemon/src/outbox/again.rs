//! What follows an error of the store or the disk: the destination is shown as failing, and is tried again with growing delays.

use crate::daemon::Daemon;
use crate::daemon::deliveries::Failing;
use std::time::{Duration, Instant};

/// A failure is logged at the first attempt, and then each time after so many.
const LOGGED_EACH: u32 = 20;
/// A destination that worked for this long begins with the shortest delay again.
const WORKED: Duration = Duration::from_secs(300);
/// The longest delay is 2 to the power of this, in seconds.
const DOUBLINGS: u32 = 6;

/// The attempts of one destination.
pub struct Again {
    destination: String,
    attempts: u32,
    began: Instant,
}

impl Again {
    pub fn new(destination: String) -> Self {
        Self {
            destination,
            attempts: 0,
            began: Instant::now(),
        }
    }

    /// An attempt begins.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// The attempt ended with an error. Returns the delay before the next one.
    pub fn failed(&mut self, daemon: &Daemon, why: String) -> Duration {
        if self.began.elapsed() > WORKED {
            self.attempts = 0;
        }
        self.attempts = self.attempts.saturating_add(1);
        let (destination, attempts) = (self.destination.as_str(), self.attempts);
        if attempts % LOGGED_EACH == 1 {
            tracing::warn!(destination, attempts, why, "messages delayed");
        }
        let failing = Failing { attempts, why };
        daemon.deliveries.set_failing(destination, failing);
        delay(attempts)
    }
}

fn delay(attempts: u32) -> Duration {
    Duration::from_secs(1 << attempts.saturating_sub(1).min(DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_a_minute() {
        let delays = [1, 2, 3, 7, 8, u32::MAX].map(|attempts| delay(attempts).as_secs());
        assert_eq!(delays, [1, 2, 4, 64, 64, 64]);
    }
}
