//! Resets that nobody asks for: the agent's own wish, a conversation that got too large, nothing said for
//! too long. When one is due follows from the journal, so it is so after any restart.

use super::AgentState;
use crate::event::{Mode, ResetSource};
use crate::time::Timestamp;

impl AgentState {
    /// What calls for a fresh conversation by now.
    pub fn auto_reset(&self, now: Timestamp) -> Option<ResetSource> {
        let idle = || self.idle_reset_at().is_some_and(|at| at <= now);
        self.reset_due()
            .or_else(|| idle().then_some(ResetSource::Idle))
    }

    /// The same, as far as no clock is needed: nothing new begins before it.
    pub fn reset_due(&self) -> Option<ResetSource> {
        if !self.is_between_turns() {
            return None;
        }
        if self.resets.scheduled().is_some() && self.spec.auto_reset.by_tool {
            return Some(ResetSource::Tool);
        }
        let over = self.spec.auto_reset.over_tokens?;
        let current = self.tree.current_conversation()?;
        let last = self.last_turn.as_ref()?;
        // Where one was refused, the next turn gives another reason.
        let is_new =
            last.conversation == current.id && self.resets.refused_after() != Some(last.id);
        (is_new && current.context_tokens >= over).then_some(ResetSource::ContextSize)
    }

    /// When the conversation will have been silent for long enough, if nothing is said meanwhile.
    pub fn idle_reset_at(&self) -> Option<Timestamp> {
        let idle_ms = self.spec.auto_reset.idle_ms?;
        let is_idle = self.inbox.waiting().len() == 0 && self.compactions.asked().is_none();
        if !is_idle || !self.is_between_turns() {
            return None;
        }
        let last = self.last_turn.as_ref()?;
        if Some(last.conversation) != self.tree.current() {
            return None;
        }
        let since = match self.resets.refused_at() {
            Some(refused) => last.ended_at.max(refused),
            None => last.ended_at,
        };
        Some(since.plus(idle_ms))
    }

    fn is_between_turns(&self) -> bool {
        let is_here = self.mode == Mode::Persistent && !self.stopped && !self.archived;
        let is_well = self.failed.is_none();
        is_here && is_well && self.turn.is_none() && self.resets.under_way().is_none()
    }
}
