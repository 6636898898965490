//! How much a child may say in one turn.

use agentd_core::spec::Limits;

/// What a child may say in one turn. One that exceeds it is killed, and the turn fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub calls: usize,
    /// Of its text and its reports of calls.
    pub bytes: usize,
}

impl Bounds {
    pub fn of(limits: &Limits) -> Self {
        let number = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            calls: number(limits.program_calls()),
            bytes: number(limits.program_bytes()),
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::of(&Limits::default())
    }
}
