//! Variables and services that tools should have and lack: the model is told before its next request, and again when they
//! are there.

use super::Machine;
use super::plan::Move;
use crate::environment::COMPLETE;
use crate::event::{Notice, NoticeCause};

impl Machine {
    /// A notice that comes before a request, if the model does not know what its tools lack.
    pub(super) fn environment_first(&mut self) -> Option<Move> {
        let told = self.window.environment();
        let text = match self.policy.lacking.notice() {
            Some(text) => {
                let is_known = told == Some(text.as_str()) && self.window.shows_environment();
                (!is_known).then_some(text)?
            }
            None => told
                .filter(|told| *told != COMPLETE)
                .map(|_| COMPLETE.to_owned())?,
        };
        let cause = NoticeCause::Environment;
        self.live.outbox.backlog.push(Notice { cause, text }.into());
        Some(Move::Append)
    }
}
