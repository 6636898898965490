//! What a session has cost. A program reports the total of its session; a turn is charged the difference to what was charged
//! before, also by an earlier process of the program.

use crate::outer::micro_usd;
use crate::usage::MicroUsd;

/// The totals of one session, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// What turns were charged. `None` if that is unknown.
    charged: Option<f64>,
    /// What this process of the program reported last.
    reported: Option<f64>,
    /// `charged` was unknown, and is what the program replayed.
    is_replayed: bool,
}

impl Costs {
    /// Those of a session of which earlier processes charged so much.
    pub const fn after(charged: Option<f64>) -> Self {
        Self {
            charged,
            reported: None,
            is_replayed: false,
        }
    }

    /// What a turn must be charged for a total that the program reports now.
    pub(super) fn reported(&mut self, total: f64) -> Option<MicroUsd> {
        let is_first = self.reported.replace(total).is_none();
        let before = self.charged.unwrap_or_default();
        // Some programs count from their start, not from that of the session.
        let more = match is_first && total < before {
            true => {
                self.charged = Some(0.0);
                total
            }
            false => (total - before).max(0.0),
        };
        micro_usd(more)
    }

    /// A turn was charged everything that was reported so far.
    pub fn charge(&mut self) {
        self.charged = self.reported.or(self.charged);
    }

    /// What was reported since `before` belongs to earlier processes. If it is known what they charged, it changes nothing;
    /// otherwise a turn is charged only what comes later.
    pub fn replayed(&mut self, before: Self) {
        if before.charged.is_some() && !before.is_replayed {
            *self = before;
        } else {
            self.charge();
            self.is_replayed = true;
        }
    }

    /// What turns were charged in total.
    pub const fn charged(&self) -> Option<f64> {
        self.charged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USD: u64 = 1_000_000;

    #[test]
    fn a_session_that_is_resumed_is_not_charged_again() {
        let mut costs = Costs::after(Some(4.0));
        assert_eq!(costs.reported(4.5), Some(MicroUsd(USD / 2)));
        costs.charge();
        assert_eq!(costs.charged(), Some(4.5));
        assert_eq!(costs.reported(4.5), Some(MicroUsd(0)));
    }

    #[test]
    fn a_total_that_no_turn_was_charged_is_charged_to_the_next_one() {
        let mut costs = Costs::default();
        assert_eq!(costs.reported(1.0), Some(MicroUsd(USD)));
        assert_eq!(costs.charged(), None);
        assert_eq!(costs.reported(3.0), Some(MicroUsd(3 * USD)));
        costs.charge();
        assert_eq!(costs.reported(3.5), Some(MicroUsd(USD / 2)));
    }

    #[test]
    fn a_program_may_count_from_its_own_start() {
        let mut costs = Costs::after(Some(4.0));
        assert_eq!(costs.reported(1.0), Some(MicroUsd(USD)));
        costs.charge();
        assert_eq!(costs.charged(), Some(1.0));
        // A total that sinks later is a correction.
        assert_eq!(costs.reported(0.5), Some(MicroUsd(0)));
    }

    #[test]
    fn totals_of_earlier_processes_are_charged_once_only() {
        let mut unknown = Costs::default();
        for total in [1.0, 4.0] {
            let before = unknown;
            unknown.reported(total);
            unknown.replayed(before);
        }
        assert_eq!(unknown.reported(4.25), Some(MicroUsd(USD / 4)));
        let mut known = Costs::after(Some(3.0));
        let before = known;
        known.reported(4.0);
        known.replayed(before);
        assert_eq!(known.reported(4.0), Some(MicroUsd(USD)));
    }

    /// A program may replay its whole history, with the totals of all turns.
    #[test]
    fn replayed_totals_below_what_was_charged_change_nothing() {
        let mut costs = Costs::after(Some(4.0));
        for total in [1.0, 2.5, 4.0] {
            let before = costs;
            costs.reported(total);
            costs.replayed(before);
        }
        assert_eq!(costs.reported(4.5), Some(MicroUsd(USD / 2)));
    }
}
