//! The time and new ids: what core is not allowed to make up.

use agentd_core::time::Timestamp;
use agentd_process::failpoint;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis.saturating_add(failpoint::clock_off_ms()))
}

pub fn new_id() -> Uuid {
    Uuid::now_v7()
}
