//! Time as a value: milliseconds since 1970, measured by the writer of an event. It is displayed and summed, never
//! used for ordering.

use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The UTC day, counted from 1970. Daily budgets use it.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// This many milliseconds later.
    pub const fn plus(self, millis: u64) -> Self {
        let millis = if millis > i64::MAX as u64 {
            i64::MAX
        } else {
            millis as i64
        };
        Self(self.0.saturating_add(millis))
    }

    /// How long since `earlier`. If the clock was set back, this is zero.
    pub const fn since(self, earlier: Self) -> u64 {
        let elapsed = self.0.saturating_sub(earlier.0);
        if elapsed < 0 { 0 } else { elapsed as u64 }
    }
}
