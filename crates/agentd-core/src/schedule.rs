//! Schedules: when they are due, which due time is handled next and how, and what is appended for it.
//!
//! Due times are instants. They are computed from the rule and from instants that are given; there is no clock here. A
//! firing is one append: the event that handles the due time, and what the firing does. So each due time is handled at
//! most once, whatever happens to processes and clocks.

mod at;
mod attempts;
mod firing;
mod rule;

pub use at::{has_offset, parse as parse_at};
pub use attempts::{Attempt, Attempts, Due};
pub use firing::{Firing, Verdict, events, key, next_firing, next_times};
pub use rule::{DueTimes, RuleError};

/// How many missed due times are caught up with [`crate::event::MissedPolicy::All`].
pub const MOST_CAUGHT_UP: usize = 100;

/// The most schedules of one agent.
pub const MOST_SCHEDULES: usize = 100;

/// The longest name of a schedule, in bytes.
pub const LONGEST_NAME: usize = 64;

/// Whether a text can be the name of a schedule.
pub fn is_name(name: &str) -> bool {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests;
