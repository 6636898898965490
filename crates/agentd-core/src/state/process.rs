//! What the journal says about the agent's process: whether it needs one, and what the next one comes after.

use super::AgentState;
use crate::event::After;

impl AgentState {
    /// Whether there is something to do that needs a process.
    pub fn needs_process(&self) -> bool {
        if self.is_held() {
            return false;
        }
        if self.ends_turn() {
            // The turn is to end, and only a process can end it as it should.
            return self.turn.is_some();
        }
        if self.is_held_back() && self.turn.is_none() {
            return false;
        }
        let has_work = match &self.turn {
            Some(_) => !self.waits_for_somebody(),
            None => self.has_asked() && self.reset_due().is_none(),
        };
        has_work && self.failed.is_none()
    }

    /// Whether an agent without work keeps its process all the same: background tasks run, and only the process records
    /// how they end.
    pub fn keeps_process(&self) -> bool {
        let may_have_one = !self.is_held() && !self.is_held_back() && self.failed.is_none();
        may_have_one && self.tasks.running().len() > 0
    }

    /// Somebody has asked for something that has not begun.
    pub(super) fn has_asked(&self) -> bool {
        self.inbox.waiting().len() > 0 || self.compactions.asked().is_some()
    }

    /// What a process that takes the agent over now comes after.
    pub const fn after(&self) -> After {
        match (self.incarnation.0, self.at_rest) {
            (0, _) => After::Start,
            (_, true) => After::Restart,
            (_, false) => After::Crash,
        }
    }
}
