//! What is at a path, compared with what is to be there and with what the agent left.

use super::change::Left;
use crate::event::FileState;

/// What is to be done about one path, given what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It already is what it is to be.
    Same,
    /// It is as the agent left it.
    AsLeft,
    /// Something else changed it.
    Changed,
}

/// Compares what is at a path with what is to be there, and with what the agent left.
pub fn compare(now: &FileState, target: &FileState, expected: &[Left]) -> Compared {
    if now == target {
        return Compared::Same;
    }
    // A file that differs from the target only in its permissions loses no content.
    let has_content = Left::from(target).is(now);
    match has_content || expected.iter().any(|left| left.is(now)) {
        true => Compared::AsLeft,
        false => Compared::Changed,
    }
}
