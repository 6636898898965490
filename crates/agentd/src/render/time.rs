//! Formatting and parsing of times and durations.

use crate::zone;
use agentd_core::time::Timestamp;
use agentd_daemon::clock;
use agentd_files::own;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// `3m ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let ms = now.since(at);
    match ms {
        ..SECOND => "just now".to_owned(),
        _ => format!("{} ago", rough(ms)),
    }
}

/// The largest unit of it: `42s`, `3m`, `5h`, `12d`.
pub fn rough(ms: u64) -> String {
    match ms {
        ..MINUTE => format!("{}s", ms / SECOND),
        MINUTE..HOUR => format!("{}m", ms / MINUTE),
        HOUR..DAY => format!("{}h", ms / HOUR),
        _ => format!("{}d", ms / DAY),
    }
}

/// All units of it: `1d 2h`, `1h 30m`, `45s`, `1s 500ms`.
pub fn exact(ms: u64) -> String {
    let units = [
        (DAY, "d"),
        (HOUR, "h"),
        (MINUTE, "m"),
        (SECOND, "s"),
        (1, "ms"),
    ];
    let mut left = ms;
    let mut parts = Vec::new();
    for (unit, name) in units {
        let (whole, rest) = (left / unit, left % unit);
        if whole > 0 {
            parts.push(format!("{whole}{name}"));
        }
        left = rest;
    }
    match parts.is_empty() {
        true => "0s".to_owned(),
        false => parts.join(" "),
    }
}

/// How long a step took: `0.4 s`, `14 s`, `3 min 05 s`, `2 h 10 min`.
pub fn took(ms: u64) -> String {
    let (seconds, minutes) = (ms / SECOND, ms / MINUTE);
    match ms {
        ..10_000 => format!("{}.{} s", seconds, ms % SECOND / 100),
        10_000..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{minutes} min {:02} s", seconds % 60),
        _ => format!("{} h {:02} min", ms / HOUR, minutes % 60),
    }
}

/// The same, without tenths: for a time that is shown while it passes.
pub fn passing(ms: u64) -> String {
    match ms {
        ..10_000 => format!("{} s", ms / SECOND),
        _ => took(ms),
    }
}

/// Local time: `2026-01-31 12:00:05`.
pub fn clock(at: Timestamp) -> String {
    in_zone(at, zone().clone())
}

/// The time in a zone: `2026-01-31 12:00:05`. None if there is no such zone.
pub fn clock_in(at: Timestamp, name: &str) -> Option<String> {
    Some(in_zone(at, zone::named(name)?))
}

/// The same, with the name of the zone: `2026-01-31 12:00:05 Europe/Zurich`. Without a zone, the local time with its
/// abbreviation: `2026-01-31 12:00:05 CET`.
pub fn clock_of(at: Timestamp, name: Option<&str>) -> String {
    let named = name.and_then(|name| Some(format!("{} {name}", clock_in(at, name)?)));
    named.unwrap_or_else(|| with_abbreviation(at, zone().clone()))
}

/// The local date: `2026-01-31`.
pub fn date(at: Timestamp) -> String {
    let clock = clock(at);
    let date = clock.split_once(' ').map(|(date, _)| date);
    date.unwrap_or(&clock).to_owned()
}

/// The user's time zone, read once.
fn zone() -> &'static TimeZone {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| match std::env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => of_file(Path::new(SYSTEM_ZONE)),
    });
    &ZONE
}

const SYSTEM_ZONE: &str = "/etc/localtime";

/// `TimeZone::system` lists every zone of the system to find the name of this one, which takes several milliseconds at
/// the start of each command. The file alone says how to compute the time.
fn of_file(path: &Path) -> TimeZone {
    let zone = own::read(path)
        .ok()
        .and_then(|data| TimeZone::tzif("", &data).ok());
    zone.unwrap_or_else(TimeZone::system)
}

fn in_zone(at: Timestamp, zone: TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(at) => at.to_zoned(zone).strftime("%F %T").to_string(),
        // Out of the range of calendar dates.
        Err(_) => at.as_millis().to_string(),
    }
}

fn with_abbreviation(at: Timestamp, zone: TimeZone) -> String {
    // An unknown zone has the time of UTC.
    let zone = match zone.is_unknown() {
        true => TimeZone::UTC,
        false => zone,
    };
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(at) => at.to_zoned(zone).strftime("%F %T %Z").to_string(),
        Err(_) => at.as_millis().to_string(),
    }
}

/// `15s`, `1m30s`, `500ms`, or a number of seconds; for clap.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let parsed = text.parse::<SignedDuration>();
    let parsed = parsed
        .ok()
        .and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.ok_or_else(|| "expected a time, such as 500ms, 30s, 5m, or 30 for seconds".to_owned())
}

/// A duration that may be days or weeks: `2h`, `7d`, `1w2d`; for clap.
pub fn age(text: &str) -> Result<Duration, String> {
    let span = text.parse::<Span>().ok();
    let length = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    let length = length.and_then(|length| Duration::try_from(length).ok());
    length.ok_or_else(|| "expected a time with its unit, such as 30m, 12h or 7d".to_owned())
}

/// A position in a log: an event, or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Seq(u64),
    At(Timestamp),
}

/// A sequence number, a time ago (`10m`, `7d`), a date, or a date with a time; for clap. Without an offset from UTC a
/// time is local.
pub fn moment(text: &str) -> Result<Moment, String> {
    moment_in(text, clock::now(), zone().clone())
}

fn moment_in(text: &str, now: Timestamp, zone: TimeZone) -> Result<Moment, String> {
    if let Ok(seq) = text.parse() {
        return Ok(Moment::Seq(seq));
    }
    if let Ok(age) = age(text) {
        let ago = i64::try_from(millis(age)).unwrap_or(i64::MAX);
        let at = now.as_millis().saturating_sub(ago);
        return Ok(Moment::At(Timestamp::from_millis(at)));
    }
    let absolute = text.parse::<jiff::Timestamp>().ok();
    let local = || {
        let local = text.parse::<DateTime>().ok()?;
        Some(local.to_zoned(zone).ok()?.timestamp())
    };
    let at = absolute.or_else(local).ok_or_else(|| {
        "expected the number of an event, or a time such as 10m, 2h, 7d, 2026-11-16 or \
         2026-11-16T10:00Z"
            .to_owned()
    })?;
    Ok(Moment::At(Timestamp::from_millis(at.as_millisecond())))
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version 1 with one type of local time: an hour and a half ahead of UTC.
    const ZONE: &[u8] = b"TZif\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\x15\x18\0\0XXT\0";

    #[test]
    fn the_zone_is_that_of_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), ZONE).unwrap();
        let zone = of_file(file.path());
        let at = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(in_zone(at, zone), "2023-11-14 23:43:20");
        // Without a valid file, the system's zone is used.
        std::fs::write(file.path(), "no zone").unwrap();
        assert_eq!(of_file(file.path()), TimeZone::system());
        assert_eq!(of_file(Path::new("/nowhere")), TimeZone::system());
    }

    #[test]
    fn a_time_is_told_by_its_largest_unit() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        let before = |ms: i64| ago(Timestamp::from_millis(1_000_000_000_000 - ms), now);
        assert_eq!(before(0), "just now");
        assert_eq!(before(999), "just now");
        assert_eq!(before(1000), "1s ago");
        assert_eq!(before(59_999), "59s ago");
        assert_eq!(before(180_000), "3m ago");
        assert_eq!(before(2 * 3_600_000 + 1), "2h ago");
        assert_eq!(before(400 * 86_400_000), "400d ago");
        // A clock that was set back.
        assert_eq!(before(-5000), "just now");
    }

    #[test]
    fn a_step_is_timed_as_exactly_as_it_matters() {
        let times = [0, 449, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_600_000];
        let expected = [
            "0.0 s",
            "0.4 s",
            "9.9 s",
            "10 s",
            "59 s",
            "1 min 00 s",
            "59 min 59 s",
            "1 h 00 min",
        ];
        assert_eq!(times.map(took), expected);
        assert_eq!([0, 3_900, 12_000].map(passing), ["0 s", "3 s", "12 s"]);
    }

    #[test]
    fn an_interval_is_shown_with_all_its_units() {
        assert_eq!(exact(7_200_000), "2h");
        assert_eq!(exact(5_400_000), "1h 30m");
        assert_eq!(exact(93_600_000), "1d 2h");
        assert_eq!(exact(1_500), "1s 500ms");
        assert_eq!(exact(0), "0s");
    }

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("15"), duration("15s"));
        for wrong in ["", "-15", "-3s", "soon", "3 apples"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_may_be_days() {
        assert_eq!(age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(age("1w"), age("7d"));
        assert_eq!(age("90m"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "7", "-1d", "1mo", "1y", "soon"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_a_number_or_a_time() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let at = |text: &str| moment_in(text, now, TimeZone::fixed(jiff::tz::offset(1)));
        let time = |ms: i64| Ok(Moment::At(Timestamp::from_millis(ms)));
        assert_eq!(at("1200"), Ok(Moment::Seq(1200)));
        assert_eq!(at("10m"), time(1_700_000_000_000 - 600_000));
        assert_eq!(at("2023-11-14T22:13:20Z"), time(1_700_000_000_000));
        assert_eq!(at("2023-11-14T22:13Z"), time(1_700_000_000_000 - 20_000));
        // The offset of the zone is an hour.
        assert_eq!(at("2023-11-14T23:13:20"), time(1_700_000_000_000));
        assert_eq!(at("2023-11-14 23:13"), time(1_700_000_000_000 - 20_000));
        assert_eq!(at("2023-11-15"), time(1_700_002_800_000));
        for wrong in ["", "-1", "soon", "2023-13-01", "10:00"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_of_a_named_zone_says_which_zone() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let of = |name| clock_of(at, Some(name));
        assert_eq!(of("Asia/Tokyo"), "2023-11-15 07:13:20 Asia/Tokyo");
        assert_eq!(of("UTC"), "2023-11-14 22:13:20 UTC");
        let tokyo = zone::named("Asia/Tokyo").unwrap();
        assert_eq!(with_abbreviation(at, tokyo), "2023-11-15 07:13:20 JST");
        let unknown = with_abbreviation(at, TimeZone::unknown());
        assert_eq!(unknown, "2023-11-14 22:13:20 UTC");
    }

    #[test]
    fn the_clock_is_that_of_the_zone() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(in_zone(at, TimeZone::UTC), "2023-11-14 22:13:20");
        assert_eq!(
            in_zone(Timestamp::from_millis(i64::MAX), TimeZone::UTC),
            i64::MAX.to_string()
        );
    }
}
