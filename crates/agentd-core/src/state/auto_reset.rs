//! Automatic resets: the agent requested one, the conversation got too large, or there was no turn for too long.
//! Whether one is due is derived from the journal, so a restart does not change it.

use super::AgentState;
use crate::event::{Mode, ResetSource};
use crate::time::Timestamp;

impl AgentState {
    /// Why a fresh conversation is due now, if it is.
    pub fn auto_reset(&self, now: Timestamp) -> Option<ResetSource> {
        let idle = || self.idle_reset_at().is_some_and(|at| at <= now);
        self.reset_due()
            .or_else(|| idle().then_some(ResetSource::Idle))
    }

    /// The same, for the reasons that need no clock. No new turn begins before such a reset.
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
        // If a reset was refused after this turn, only a newer turn is a new reason.
        let is_new =
            last.conversation == current.id && self.resets.refused_after() != Some(last.id);
        (is_new && current.context_tokens >= over).then_some(ResetSource::ContextSize)
    }

    /// When the conversation will have been idle for long enough, if there is no turn until then.
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

    pub(super) fn is_between_turns(&self) -> bool {
        let is_here = self.mode == Mode::Persistent && !self.stopped && !self.archived;
        let is_well = self.failed.is_none();
        is_here && is_well && self.turn.is_none() && self.resets.under_way().is_none()
    }
}
