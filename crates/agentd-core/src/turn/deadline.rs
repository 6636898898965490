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

/// A time limit that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    limit: LimitKind,
    /// Something was under way when it was.
    cuts_off: bool,
}

impl Machine {
    /// When the turn under way is to end at the latest, so that the driver can say
    /// [`super::Input::TimeUp`] then. None for a turn that is ending.
    pub fn deadline(&self, now: Timestamp) -> Option<Deadline> {
        let turn = self.agent.turn.as_ref()?.id;
        if self.live.interrupting || self.live.reloaded || self.live.stopped {
            return None;
        }
        let (at, limit) = budget::deadline(&self.agent, now)?;
        Some(Deadline { turn, at, limit })
    }

    /// Ends the turn where a time limit is used up. A driver that is woken late finds it here.
    pub(super) fn keep_time(&mut self, now: Timestamp) {
        if let Some(deadline) = self.deadline(now)
            && deadline.at <= now
        {
            self.out_of_time(deadline.limit);
        }
    }

    /// A time limit is used up: what runs is ended as by an interrupt, and the turn is `limited`.
    pub(super) fn out_of_time(&mut self, limit: LimitKind) {
        if self.live.interrupting {
            return;
        }
        self.live.interrupting = true;
        let cuts_off = self.live.sent.is_some() || self.window.has_open_calls();
        self.live.limited = Some(Limited { limit, cuts_off });
    }

    /// The turn ends because of a time limit. It can be continued, so that the model must know where
    /// it was cut off.
    pub(super) fn run_out_of_time(&mut self, limited: Limited) -> Move {
        if limited.cuts_off && !self.compacts() {
            let cause = NoticeCause::Limited;
            let text = "This turn reached its time limit: what was under way was ended.".to_owned();
            self.live.backlog.push(Notice { cause, text }.into());
        }
        self.limit(limited.limit)
    }
}
