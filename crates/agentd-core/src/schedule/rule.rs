//! The due times of a rule.

use super::MOST_CAUGHT_UP;
use crate::event::ScheduleRule;
use crate::time::Timestamp;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::collections::VecDeque;

/// How many due times that passed are counted one by one.
const MOST_COUNTED: u64 = 10_000;
const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
/// The bounds of an interval: a second, and ten years.
const SHORTEST_MS: u64 = 1000;
const LONGEST_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// Why a rule has no due times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("`{expression}` is not a cron expression: {reason}")]
    Cron { expression: String, reason: String },
    #[error("`{0}` is not a zone of the time-zone database")]
    Zone(String),
    #[error("`{0}` is not a time that can be read")]
    Time(String),
    #[error("the interval must be at least 1 second and at most 10 years")]
    Interval,
    #[error("the time has passed")]
    Passed,
    #[error("no date matches it: it would never be due")]
    Never,
}

impl RuleError {
    /// What the user can do.
    pub const fn next(&self) -> &'static str {
        match self {
            Self::Cron { .. } => {
                "write minute, hour, day of month, month and day of week, for instance \"0 9 * * 1-5\""
            }
            Self::Zone(_) => "write a zone like Europe/Zurich or UTC",
            Self::Time(_) => "write 18:30, 2026-12-24T18:30 or 2026-12-24T18:30:00+01:00",
            Self::Interval => "write an interval like 30s, 15m, 2h or 1d",
            Self::Passed => "write a time that has not passed yet",
            Self::Never => "write a day of month that the month has",
        }
    }
}

/// The due times from one instant to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimes {
    /// The latest ones, in order: at most one more than may be caught up. Never empty.
    pub latest: VecDeque<Timestamp>,
    /// How many there are. If there are more than 10,000, they are not all counted.
    pub total: u64,
    /// The first one after them.
    pub next: Option<Timestamp>,
}

/// The zone with this name, from the database that is part of the program.
pub(super) fn zone(name: &str) -> Result<TimeZone, RuleError> {
    let found = TimeZoneDatabase::bundled().get(name);
    found.map_err(|_| RuleError::Zone(name.to_owned()))
}

impl ScheduleRule {
    /// The first due time after an instant.
    pub fn next_after(&self, after: Timestamp) -> Result<Option<Timestamp>, RuleError> {
        match self {
            Self::Cron { expression, zone } => Ok(Wall::new(expression, zone)?.next_after(after)),
            Self::At { at, .. } => Ok(Some(*at).filter(|at| *at > after)),
            Self::Every { every_ms, from } => {
                let every = interval(*every_ms)?;
                let passed = after.as_millis().saturating_sub(from.as_millis());
                let number = passed.div_euclid(every).saturating_add(1).max(1);
                let due = number
                    .checked_mul(every)
                    .and_then(|off| from.as_millis().checked_add(off));
                Ok(due.map(Timestamp::from_millis))
            }
        }
    }

    /// The first due time of a new schedule; an error if there is none.
    pub fn first_after(&self, now: Timestamp) -> Result<Timestamp, RuleError> {
        let next = self.next_after(now)?;
        match self {
            Self::At { zone: name, .. } => {
                zone(name)?;
                next.ok_or(RuleError::Passed)
            }
            Self::Cron { .. } | Self::Every { .. } => next.ok_or(RuleError::Never),
        }
    }

    /// The due times from `first`, which is one, up to and including `now`.
    pub fn due_until(&self, first: Timestamp, now: Timestamp) -> Result<DueTimes, RuleError> {
        match self {
            Self::Cron { expression, zone } => {
                Ok(Wall::new(expression, zone)?.due_until(first, now))
            }
            Self::At { .. } => Ok(DueTimes {
                latest: VecDeque::from([first]),
                total: 1,
                next: None,
            }),
            Self::Every { every_ms, .. } => {
                let every = interval(*every_ms)?;
                let more = now.since(first) / every.unsigned_abs();
                let nth = |n: u64| first.plus(n.saturating_mul(every.unsigned_abs()));
                let oldest = more.saturating_sub(MOST_CAUGHT_UP as u64);
                Ok(DueTimes {
                    latest: (oldest..=more).map(nth).collect(),
                    total: more.saturating_add(1),
                    next: Some(nth(more.saturating_add(1))),
                })
            }
        }
    }
}

fn interval(every_ms: u64) -> Result<i64, RuleError> {
    match every_ms {
        SHORTEST_MS..=LONGEST_MS => i64::try_from(every_ms).map_err(|_| RuleError::Interval),
        _ => Err(RuleError::Interval),
    }
}

const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

/// Why the parser refuses an expression.
fn reason(parser: &CronParser, expression: &str) -> String {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    match fields.as_slice() {
        [name] if name.starts_with('@') => {
            return "the names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
                .to_owned();
        }
        [_] => return "it has 1 field, and 5 are expected".to_owned(),
        fields if fields.len() != FIELDS.len() => {
            return format!("it has {} fields, and 5 are expected", fields.len());
        }
        _ => {}
    }
    let is_wrong = |at: usize| {
        let mut alone = ["*"; FIELDS.len()];
        alone[at] = fields[at];
        parser.parse(&alone.join(" ")).is_err()
    };
    match (0..FIELDS.len()).find(|at| is_wrong(*at)) {
        Some(at) => format!("`{}` cannot be the {}", fields[at], FIELDS[at]),
        None => "its fields do not fit together".to_owned(),
    }
}

/// A cron expression on the wall clock of a zone.
///
/// An expression with one time of day is due once a day: in the spring, a time that does not exist is due at the end of
/// the gap, and in the autumn the first of two equal times counts. Other expressions are due whenever the wall clock
/// shows a time that matches: not in the gap, and in both of the repeated hours.
struct Wall {
    cron: Cron,
    zone: TimeZone,
}

impl Wall {
    fn new(expression: &str, name: &str) -> Result<Self, RuleError> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        // The parser does not know this name of `@daily`.
        let meant = match expression.trim().eq_ignore_ascii_case("@midnight") {
            true => "@daily",
            false => expression,
        };
        let cron = parser.parse(meant).map_err(|_| RuleError::Cron {
            expression: expression.to_owned(),
            reason: reason(&parser, expression),
        })?;
        Ok(Self {
            cron,
            zone: zone(name)?,
        })
    }

    fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // The search moves in steps of wall-clock seconds. If it ended at or before its start, it would be repeated
        // from a later start, so that a schedule cannot stand still.
        [0, SECOND_MS, 60 * MINUTE_MS, 120 * MINUTE_MS]
            .into_iter()
            .filter_map(|off| self.search(after.as_millis().saturating_add(off)))
            .find(|found| *found > after)
    }

    fn search(&self, from: i64) -> Option<Timestamp> {
        let from = jiff::Timestamp::from_second(from.div_euclid(SECOND_MS)).ok()?;
        let from = from.to_zoned(self.zone.clone());
        let found = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(Timestamp::from_millis(found.timestamp().as_millisecond()))
    }

    fn due_until(&self, first: Timestamp, now: Timestamp) -> DueTimes {
        let mut walk = Walk::from(first);
        while walk.total < MOST_COUNTED {
            match self.next_after(walk.last) {
                Some(due) if due <= now => walk.add(due),
                next => return walk.ended(next),
            }
        }
        self.latest(walk.last, now, walk.total)
    }

    /// The latest due times after one that is known, without counting all of them.
    fn latest(&self, known: Timestamp, now: Timestamp, total: u64) -> DueTimes {
        let mut span = MINUTE_MS * MOST_CAUGHT_UP as i64;
        loop {
            let start = Timestamp::from_millis(now.as_millis().saturating_sub(span)).max(known);
            let mut walk = Walk::from(known);
            let mut at = start;
            let next = loop {
                match self.next_after(at) {
                    Some(due) if due <= now => walk.add(due),
                    next => break next,
                }
                at = walk.last;
            };
            // Then the known one is no longer among the latest.
            let is_enough = walk.total > MOST_CAUGHT_UP as u64 + 1;
            if start == known || is_enough {
                walk.total = walk.total.max(total);
                return walk.ended(next);
            }
            span = span.saturating_mul(4);
        }
    }
}

/// The latest due times of a walk.
struct Walk {
    latest: VecDeque<Timestamp>,
    last: Timestamp,
    total: u64,
}

impl Walk {
    fn from(first: Timestamp) -> Self {
        Self {
            latest: VecDeque::from([first]),
            last: first,
            total: 1,
        }
    }

    fn add(&mut self, due: Timestamp) {
        self.latest.push_back(due);
        if self.latest.len() > MOST_CAUGHT_UP + 1 {
            self.latest.pop_front();
        }
        self.last = due;
        self.total += 1;
    }

    fn ended(self, next: Option<Timestamp>) -> DueTimes {
        DueTimes {
            latest: self.latest,
            total: self.total,
            next,
        }
    }
}
