//! How long to wait before the next attempt.

use agentd_core::turn::backoff_ms;
use std::time::Duration;

/// The wait that core decides, with some jitter so that many agents do not retry at the same moment. Never less than
/// the provider asked for.
pub fn delay(failures: u32, at_least_ms: Option<u64>) -> Duration {
    let base = backoff_ms(failures, at_least_ms);
    Duration::from_millis(base + base * chance() / 400)
}

/// A number from 0 to 99.
fn chance() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes) % 100,
        // Without chance all wait alike, which is harmless.
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jitter_is_at_most_a_quarter() {
        for failures in 1..40 {
            let ms = delay(failures, None).as_millis() as u64;
            let base = backoff_ms(failures, None);
            assert!((base..=base + base / 4).contains(&ms), "{failures}: {ms}");
        }
        assert!(delay(1, Some(7_000)) >= Duration::from_millis(7_000));
    }
}
