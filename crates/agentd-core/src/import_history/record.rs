//! Reads parts of a record. What is missing or has another type is none.

use crate::time::Timestamp;
use serde_json::Value;

pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

pub(super) fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

pub(super) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let items = value.get(key).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// The text of a field that is a string, or JSON of any other kind.
pub(super) fn string_or_json(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A time like `2026-11-17T12:13:34.358Z` or `2026-11-17 12:13:34`.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_valid {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len()),
        ),
        None => ("", rest),
    };
    let millis = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    let offset = match zone.as_bytes() {
        [] | [b'Z'] => 0,
        [sign @ (b'+' | b'-'), ..] => {
            let hours: i64 = zone.get(1..3)?.parse().ok()?;
            let minutes: i64 = zone.get(4..6).unwrap_or("0").parse().ok()?;
            let offset = hours * 60 + minutes;
            if *sign == b'+' { offset } else { -offset }
        }
        _ => return None,
    };
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset;
    Some(Timestamp::from_millis(
        (minutes * 60 + second) * 1000 + millis,
    ))
}

/// Days since 1970 of a date in the Gregorian calendar.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form_that_programs_write() {
        let is = |text, millis| assert_eq!(time(text), Some(Timestamp(millis)), "{text}");
        is("1970-01-01T00:00:00Z", 0);
        is("2026-11-17T12:13:34.358Z", 1_794_917_614_358);
        is("2026-11-17 12:13:36", 1_794_917_616_000);
        is("2026-11-17T14:13:36.5+02:00", 1_794_917_616_500);
        is("2024-02-29T00:00:00Z", 1_709_164_800_000);
        for bad in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-17T12"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
