//! The agent's plan after a compaction: the model is told it again before its next request.

use super::Machine;
use super::plan::Move;
use crate::event::{Notice, NoticeCause};

impl Machine {
    /// A reminder of the plan, if a summary has replaced the call that set it.
    pub(super) fn plan_first(&mut self) -> Option<Move> {
        let text = self.window.lost_plan()?.reminder();
        let cause = NoticeCause::Plan;
        self.live.outbox.backlog.push(Notice { cause, text }.into());
        Some(Move::Append)
    }
}
