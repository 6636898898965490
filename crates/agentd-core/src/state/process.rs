//! What the journal says about the agent's name and process: whether it needs one, and what preceded the next one.

use super::{AgentState, Approval, Turn};
use crate::event::{After, IncarnationBegan, IncarnationEnded};

impl AgentState {
    /// Whether there is work that needs a process.
    pub fn needs_process(&self) -> bool {
        if self.is_held() {
            return false;
        }
        if self.ends_turn() {
            // The turn must end, and only a process can end it properly.
            return self.turn.is_some();
        }
        if self.is_held_back() && self.turn.is_none() {
            return false;
        }
        let has_work = match &self.turn {
            Some(turn) => !self.waits_for_user() || self.waits_in_program(turn),
            None => self.has_asked() && self.reset_due().is_none(),
        };
        has_work && self.failed.is_none()
    }

    /// Whether a running program takes part in the turn, so that its questions to the user can only be answered in this
    /// process: the program of an outer agent that was given the turn, or an MCP server that asks during its call. No later
    /// process can wait in its place.
    pub fn waits_in_program(&self, turn: &Turn) -> bool {
        let is_given = self.spec.is_outer() && turn.was_delivered();
        let is_running =
            |asked: &Approval| asked.turn == Some(turn.id) && turn.calls.contains_key(&asked.call);
        let mut questions = self.approvals.waiting();
        turn.paused.is_none() && (is_given || questions.any(|(_, asked)| is_running(asked)))
    }

    /// Whether an agent without work keeps its process: background tasks are running, and only the process records
    /// how they end.
    pub fn keeps_process(&self) -> bool {
        let may_have_one = !self.is_held() && !self.is_held_back() && self.failed.is_none();
        may_have_one && self.tasks.running().len() > 0
    }

    /// Whether a request has not begun yet: a queued prompt or a compaction.
    pub(super) fn has_asked(&self) -> bool {
        self.inbox.waiting().len() > 0 || self.compactions.asked().is_some()
    }

    /// What precedes a process that takes over the agent now.
    pub const fn after(&self) -> After {
        match (self.incarnation.0, self.at_rest) {
            (0, _) => After::Start,
            (_, true) => After::Restart,
            (_, false) => After::Crash,
        }
    }

    pub(super) fn rename(&mut self, name: &str) -> bool {
        let old = std::mem::replace(&mut self.name, name.to_owned());
        self.aliases.retain(|alias| alias != name);
        if old != self.name && !self.aliases.contains(&old) {
            self.aliases.push(old);
        }
        true
    }

    pub(super) fn begin_incarnation(&mut self, body: &IncarnationBegan) -> bool {
        self.incarnation = body.incarnation;
        self.at_rest = false;
        let was_tried = body.after == After::Crash && !self.waits_for_user();
        if let (true, Some(turn)) = (was_tried, &mut self.turn) {
            turn.crashes = turn.crashes.saturating_add(1);
        }
        true
    }

    pub(super) fn end_incarnation(&mut self, body: &IncarnationEnded) -> bool {
        let is_newest = body.incarnation == self.incarnation;
        self.at_rest |= is_newest;
        is_newest
    }
}
