//! What an agent has spent: in total, and today.

use crate::event::RequestEnded;
use crate::time::Timestamp;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    pub lifetime: Spent,
    day: i64,
    today: Spent,
}

impl Spending {
    /// What was spent on the day of `at`. If the clock was set back, spending is added to the newest day seen, so
    /// that a day's budget cannot be spent twice.
    pub fn on_day_of(&self, at: Timestamp) -> Spent {
        if at.day() > self.day {
            Spent::default()
        } else {
            self.today
        }
    }

    /// The newest day seen.
    pub(super) const fn day(&self) -> i64 {
        self.day
    }

    pub(super) fn charge(&mut self, at: Timestamp, body: &RequestEnded) {
        self.turn_to(at);
        self.lifetime.add(body.usage, body.cost);
        self.today.add(body.usage, body.cost);
    }

    pub(super) fn work(&mut self, at: Timestamp, busy_ms: u64) {
        self.turn_to(at);
        self.lifetime.work(busy_ms);
        self.today.work(busy_ms);
    }

    fn turn_to(&mut self, at: Timestamp) {
        if at.day() > self.day {
            self.day = at.day();
            self.today = Spent::default();
        }
    }
}
