//! How long to wait before the next attempt.

use std::time::Duration;

const FIRST_MS: u64 = 500;
const MOST_MS: u64 = 60_000;

/// Doubles with each failure, up to a minute, with some jitter so that many agents do not retry at the same moment.
/// Never less than the provider asked for.
pub fn delay(failures: u32, at_least_ms: Option<u64>) -> Duration {
    let doubled = FIRST_MS.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let base = doubled.min(MOST_MS).max(at_least_ms.unwrap_or(0));
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
    fn it_grows_to_a_ceiling_and_honours_the_provider() {
        for failures in 1..40 {
            let ms = delay(failures, None).as_millis() as u64;
            let base = (FIRST_MS << failures.saturating_sub(1).min(16)).min(MOST_MS);
            assert!((base..=base + base / 4).contains(&ms), "{failures}: {ms}");
        }
        assert!(delay(1, Some(7_000)) >= Duration::from_millis(7_000));
        assert!(delay(1, Some(100)) >= Duration::from_millis(FIRST_MS));
    }
}
