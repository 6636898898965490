//! Times in views: RFC 3339, in UTC, to the millisecond. Journal lines keep milliseconds.

use agentd_core::time::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Always three decimal places, so that texts sort like times.
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `2026-01-31T09:30:00.000Z`.
pub fn rfc3339(at: Timestamp) -> String {
    // A time outside the calendar's range comes from a wrong clock: it is clamped.
    let within = at.as_millis().clamp(
        jiff::Timestamp::MIN.as_millisecond(),
        jiff::Timestamp::MAX.as_millisecond(),
    );
    let at = jiff::Timestamp::from_millisecond(within).unwrap_or_default();
    PRINTER.timestamp_to_string(&at)
}

pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    let at: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
    Ok(Timestamp::from_millis(at.as_millisecond()))
}

/// The same for an optional time.
pub mod option {
    use super::{Deserializer, Serializer, Timestamp};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Time(#[serde(with = "super")] Timestamp);

    pub fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(Time).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let at = Option::<Time>::deserialize(deserializer)?;
        Ok(at.map(|Time(at)| at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(
            rfc3339(Timestamp::from_millis(1_700_000_000_005)),
            "2023-11-14T22:13:20.005Z"
        );
        assert_eq!(
            rfc3339(Timestamp::from_millis(0)),
            "1970-01-01T00:00:00.000Z"
        );
        for odd in [i64::MIN, -1, i64::MAX] {
            assert!(rfc3339(Timestamp::from_millis(odd)).ends_with('Z'));
        }
    }
}
