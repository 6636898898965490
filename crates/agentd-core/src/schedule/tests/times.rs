//! The due times of rules: wall clocks, daylight saving, intervals, and long downtimes.

use super::{at, cron, every};
use crate::event::ScheduleRule;
use crate::schedule::{MOST_CAUGHT_UP, RuleError, has_offset, is_name, parse_at};
use crate::time::Timestamp;

const ZURICH: &str = "Europe/Zurich";
const HOUR_MS: u64 = 3_600_000;

/// The due times after an instant.
fn after(rule: &ScheduleRule, from: &str, count: usize) -> Vec<Timestamp> {
    let mut times = Vec::new();
    let mut last = at(from);
    while times.len() < count {
        last = rule.next_after(last).unwrap().unwrap();
        times.push(last);
    }
    times
}

fn are(times: &[Timestamp], expected: &[&str]) {
    let expected: Vec<Timestamp> = expected.iter().map(|text| at(text)).collect();
    assert_eq!(times, expected);
}

#[test]
fn working_days_follow_the_wall_clock_of_the_zone() {
    let rule = cron("0 9 * * 1-5", ZURICH);
    // Friday at nine in the winter; Monday at nine in the summer.
    let times = after(&rule, "2026-03-27T07:59:59Z", 3);
    are(
        &times,
        &[
            "2026-03-27T08:00:00Z",
            "2026-03-30T07:00:00Z",
            "2026-03-31T07:00:00Z",
        ],
    );
}

#[test]
fn in_spring_a_time_that_does_not_exist_is_due_at_the_end_of_the_gap() {
    let daily = cron("30 2 * * *", ZURICH);
    let times = after(&daily, "2026-03-28T00:00:00Z", 3);
    are(
        &times,
        &[
            "2026-03-28T01:30:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-30T00:30:00Z",
        ],
    );
    // Twice an hour: the hour of the gap is not there.
    let often = cron("*/30 * * * *", ZURICH);
    let times = after(&often, "2026-03-29T00:00:00Z", 3);
    are(
        &times,
        &[
            "2026-03-29T00:30:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:30:00Z",
        ],
    );
}

#[test]
fn in_autumn_a_time_of_day_is_due_once_and_an_interval_in_both_hours() {
    let daily = cron("30 2 * * *", ZURICH);
    let times = after(&daily, "2026-10-24T12:00:00Z", 2);
    are(&times, &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // From an instant in the second of the two hours, too.
    let times = after(&daily, "2026-10-25T01:10:00Z", 1);
    are(&times, &["2026-10-26T01:30:00Z"]);
    let often = cron("*/30 * * * *", ZURICH);
    let times = after(&often, "2026-10-24T23:30:00Z", 5);
    are(
        &times,
        &[
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:00:00Z",
        ],
    );
}

#[test]
fn an_interval_is_the_same_on_every_day_of_the_year() {
    let rule = every(2 * HOUR_MS, at("2026-03-28T23:15:00Z"));
    let times = after(&rule, "2026-03-28T23:15:00Z", 3);
    are(
        &times,
        &[
            "2026-03-29T01:15:00Z",
            "2026-03-29T03:15:00Z",
            "2026-03-29T05:15:00Z",
        ],
    );
    // Before its beginning, the first one is a whole interval after the beginning.
    are(
        &after(&rule, "2020-01-01T00:00:00Z", 1),
        &["2026-03-29T01:15:00Z"],
    );
    // In the middle of an interval.
    are(
        &after(&rule, "2026-03-29T02:00:00Z", 1),
        &["2026-03-29T03:15:00Z"],
    );
}

#[test]
fn a_single_time_is_due_once() {
    let due = at("2026-12-24T17:30:00Z");
    let zone = ZURICH.to_owned();
    let rule = ScheduleRule::At { at: due, zone };
    let before = Timestamp::from_millis(due.as_millis() - 1);
    assert_eq!(rule.next_after(before).unwrap(), Some(due));
    assert_eq!(rule.next_after(due).unwrap(), None);
    assert_eq!(rule.first_after(due), Err(RuleError::Passed));
    let passed = rule.due_until(due, at("2027-01-01T00:00:00Z")).unwrap();
    assert_eq!((passed.total, passed.next), (1, None));
}

#[test]
fn a_week_without_the_daemon_is_counted() {
    let rule = cron("0 9 * * *", "UTC");
    let first = at("2026-01-05T09:00:00Z");
    let due = rule.due_until(first, at("2026-01-12T08:59:59Z")).unwrap();
    assert_eq!(due.total, 7);
    assert_eq!(due.latest.front(), Some(&first));
    assert_eq!(due.latest.back(), Some(&at("2026-01-11T09:00:00Z")));
    assert_eq!(due.next, Some(at("2026-01-12T09:00:00Z")));
    // A due time that is exactly now is due.
    let due = rule.due_until(first, at("2026-01-12T09:00:00Z")).unwrap();
    assert_eq!(due.total, 8);
}

#[test]
fn many_missed_due_times_are_found_from_the_end() {
    let first = at("2026-01-01T00:00:00Z");
    let now = at("2026-12-31T23:59:30Z");
    let minutely = cron("* * * * *", "UTC").due_until(first, now).unwrap();
    let hourly = every(60_000, at("2025-12-31T23:59:00Z"));
    let by_interval = hourly.due_until(first, now).unwrap();
    assert_eq!(minutely.latest, by_interval.latest);
    assert_eq!(minutely.next, by_interval.next);
    assert_eq!(minutely.latest.len(), MOST_CAUGHT_UP + 1);
    assert!(minutely.total >= 10_000, "{}", minutely.total);
    assert_eq!(by_interval.total, 365 * 24 * 60);
    // Dense in January, and not due for months.
    let january = cron("* * * 1 *", "UTC").due_until(first, now).unwrap();
    assert_eq!(january.latest.back(), Some(&at("2026-01-31T23:59:00Z")));
    assert_eq!(january.latest.len(), MOST_CAUGHT_UP + 1);
    assert_eq!(january.next, Some(at("2027-01-01T00:00:00Z")));
}

#[test]
fn rules_that_cannot_be_due_are_refused() {
    let now = at("2026-01-01T00:00:00Z");
    let error = |rule: ScheduleRule| rule.first_after(now).unwrap_err();
    for odd in ["", "nonsense", "0 9 * *", "0 0 9 * * 1-5", "61 * * * *"] {
        let error = error(cron(odd, "UTC"));
        assert!(
            matches!(error, RuleError::Cron { .. }),
            "{odd:?}: {error:?}"
        );
    }
    let nowhere = "Europe/Nowhere".to_owned();
    assert_eq!(
        error(cron("0 9 * * *", &nowhere)),
        RuleError::Zone(nowhere.clone())
    );
    assert_eq!(error(cron("0 0 30 2 *", "UTC")), RuleError::Never);
    for odd in [0, 999, u64::MAX] {
        assert_eq!(error(every(odd, now)), RuleError::Interval);
    }
    let zone = nowhere;
    let later = at("2026-01-02T00:00:00Z");
    let rule = ScheduleRule::At { at: later, zone };
    assert!(matches!(error(rule), RuleError::Zone(_)));
}

#[test]
fn a_cron_expression_is_refused_with_the_field_that_is_wrong() {
    let now = at("2026-01-01T00:00:00Z");
    let texts = [
        ("0 9 * *", "it has 4 fields, and 5 are expected"),
        ("9", "it has 1 field, and 5 are expected"),
        ("61 * * * *", "`61` cannot be the minute"),
        ("0 9 * 13 *", "`13` cannot be the month"),
        ("@noon", "the names are @hourly, @daily, @midnight"),
    ];
    for (expression, expected) in texts {
        let error = cron(expression, "UTC").first_after(now).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{expression}: {text}");
    }
}

#[test]
fn midnight_is_another_name_of_daily() {
    let now = at("2026-01-01T10:00:00Z");
    let first = |name: &str| cron(name, ZURICH).first_after(now).unwrap();
    assert_eq!(first("@midnight"), at("2026-01-01T23:00:00Z"));
    assert_eq!(first("@Midnight"), first("@daily"));
}

#[test]
fn a_time_with_an_offset_needs_no_zone() {
    for text in ["2026-12-24T18:30:00+01:00", " 2026-12-24T17:30Z "] {
        assert!(has_offset(text), "{text}");
    }
    for text in ["18:30", "2026-12-24T18:30", "2026-12-24", "soon"] {
        assert!(!has_offset(text), "{text}");
    }
}

#[test]
fn a_time_is_read_on_the_wall_clock_of_the_zone() {
    let now = at("2026-07-01T10:00:00Z");
    let read = |text: &str| parse_at(text, ZURICH, now);
    // It is noon in Zurich.
    assert_eq!(read("18:30"), Ok(at("2026-07-01T16:30:00Z")));
    assert_eq!(read("12:00"), Ok(at("2026-07-02T10:00:00Z")));
    assert_eq!(read("2026-12-24T18:30"), Ok(at("2026-12-24T17:30:00Z")));
    assert_eq!(read("2026-12-24 18:30"), Ok(at("2026-12-24T17:30:00Z")));
    assert_eq!(
        read("2026-12-24T18:30:00-05:00"),
        Ok(at("2026-12-24T23:30:00Z"))
    );
    assert_eq!(read("2026-12-24T18:30:00Z"), Ok(at("2026-12-24T18:30:00Z")));
    // In the gap, and in the repeated hour.
    assert_eq!(read("2027-03-28T02:30"), Ok(at("2027-03-28T01:30:00Z")));
    assert_eq!(read("2026-10-25T02:30"), Ok(at("2026-10-25T00:30:00Z")));
    for odd in ["", "soon", "2026-12-24", "25:00"] {
        assert_eq!(read(odd), Err(RuleError::Time(odd.to_owned())), "{odd:?}");
    }
}

#[test]
fn names_are_short_words() {
    for name in ["s1", "daily", "night.ly-2_x"] {
        assert!(is_name(name), "{name}");
    }
    let long = "x".repeat(65);
    for name in ["", "two words", "a/b", "é", long.as_str()] {
        assert!(!is_name(name), "{name}");
    }
}
