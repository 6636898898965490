//! The current time and new ids. Core has neither: it gets them as values.

use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

pub fn now() -> Timestamp {
    let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    };
    Timestamp::from_millis(millis.saturating_add(failpoint::clock_off_ms()))
}

pub fn new_id() -> Uuid {
    Uuid::now_v7()
}
