//! A time that a user wrote.

use super::rule::{RuleError, zone};
use crate::time::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};

/// The instant of `18:30`, of `2026-12-24T18:30` (or with a space), or of a time with an offset. A time of day is the next
/// one on the wall clock of the zone. A time in the gap of the spring moves forward by its length, and of two equal times in
/// the autumn the first one counts.
pub fn parse(text: &str, zone_name: &str, now: Timestamp) -> Result<Timestamp, RuleError> {
    let zone = zone(zone_name)?;
    let not_a_time = || RuleError::Time(text.to_owned());
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_millis(at.as_millisecond()));
    }
    if let Ok(at) = text.parse::<DateTime>() {
        // A date alone would be midnight, which few mean.
        if text.parse::<Date>().is_ok() && !text.contains(':') {
            return Err(not_a_time());
        }
        return instant(&zone, at).ok_or_else(not_a_time);
    }
    let time: Time = text.parse().map_err(|_| not_a_time())?;
    let today = jiff::Timestamp::from_millisecond(now.as_millis()).map_err(|_| not_a_time())?;
    let today: Zoned = today.to_zoned(zone.clone());
    let at = instant(&zone, today.date().to_datetime(time)).ok_or_else(not_a_time)?;
    if at > now {
        return Ok(at);
    }
    let tomorrow = today.date().checked_add(1.day());
    let tomorrow = tomorrow.map_err(|_| not_a_time())?;
    instant(&zone, tomorrow.to_datetime(time)).ok_or_else(not_a_time)
}

/// Whether a time says its offset from UTC, so that no zone changes it.
pub fn has_offset(text: &str) -> bool {
    text.trim().parse::<jiff::Timestamp>().is_ok()
}

fn instant(zone: &TimeZone, at: DateTime) -> Option<Timestamp> {
    let zoned = zone.to_ambiguous_zoned(at).compatible().ok()?;
    Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
}
