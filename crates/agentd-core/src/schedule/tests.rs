//! Due times and firings on virtual time.

mod firings;
mod times;

use crate::event::ScheduleRule;
use crate::time::Timestamp;

/// An instant in RFC 3339.
fn at(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_millis(at.as_millisecond())
}

fn cron(expression: &str, zone: &str) -> ScheduleRule {
    ScheduleRule::Cron {
        expression: expression.to_owned(),
        zone: zone.to_owned(),
    }
}

fn every(every_ms: u64, from: Timestamp) -> ScheduleRule {
    ScheduleRule::Every { every_ms, from }
}
