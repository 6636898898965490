//! The time limits of a turn.

use super::Machine;
use super::plan::Move;
use crate::budget;
use crate::event::{LimitKind, Notice, NoticeCause};
use crate::id::TurnId;
use crate::time::Timestamp;

/// When a time limit ends a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    pub turn: TurnId,
    pub at: Timestamp,
    pub limit: LimitKind,
}

/// A time limit that has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    limit: LimitKind,
    /// Work was in progress when it was reached.
    cuts_off: bool,
}

impl Machine {
    /// When the running turn must end at the latest. The driver sends [`super::Input::TimeUp`] then. `None` if the
    /// turn is already ending.
    pub fn deadline(&self, now: Timestamp) -> Option<Deadline> {
        let turn = self.agent.turn.as_ref()?.id;
        if self.live.turn.interrupting || self.live.process.reloaded || self.live.process.stopped {
            return None;
        }
        let (at, limit) = budget::deadline(&self.agent, now)?;
        Some(Deadline { turn, at, limit })
    }

    /// Ends the turn if a time limit has been reached. This covers a driver that is woken late.
    pub(super) fn keep_time(&mut self, now: Timestamp) {
        if let Some(deadline) = self.deadline(now)
            && deadline.at <= now
        {
            self.out_of_time(deadline.limit);
        }
    }

    /// A time limit has been reached: ends what is running as an interrupt does, and the turn becomes `limited`.
    pub(super) fn out_of_time(&mut self, limit: LimitKind) {
        if self.live.turn.interrupting {
            return;
        }
        self.live.turn.interrupting = true;
        let cuts_off = self.live.request.sent.is_some() || self.window.has_open_calls();
        self.live.turn.limited = Some(Limited { limit, cuts_off });
    }

    /// Ends the turn because of a time limit. The turn can be continued, so the model must know that it was cut off.
    pub(super) fn run_out_of_time(&mut self, limited: Limited) -> Move {
        if limited.cuts_off && !self.compacts() {
            let cause = NoticeCause::Limited;
            let text = "This turn reached its time limit; work in progress was ended.".to_owned();
            self.live.outbox.backlog.push(Notice { cause, text }.into());
        }
        self.limit(limited.limit)
    }
}
