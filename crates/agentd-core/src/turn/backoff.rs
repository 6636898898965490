//! How long a turn waits at least before the next attempt. The driver adds jitter; a client shows the wait.

const FIRST_MS: u64 = 500;
const MOST_MS: u64 = 60_000;

/// Doubles with each failure in a row, up to a minute. Never less than the provider asked for.
pub fn backoff_ms(failures: u32, at_least_ms: Option<u64>) -> u64 {
    let doubled = FIRST_MS.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(MOST_MS).max(at_least_ms.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_to_a_minute_and_honours_the_provider() {
        let waits: Vec<u64> = (1..=9).map(|failures| backoff_ms(failures, None)).collect();
        let expected = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(waits, expected);
        assert_eq!(backoff_ms(1, Some(7_000)), 7_000);
        assert_eq!(backoff_ms(1, Some(100)), 500);
        assert_eq!(backoff_ms(u32::MAX, None), 60_000);
    }
}
