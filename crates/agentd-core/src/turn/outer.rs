//! Outer agents: the program of the agent runs the turn, and the machine records what it says.
//!
//! The program takes the place of the model and of the tools. A request delivers the turn's prompts, or waits for the
//! rest of the answer; a call is the program's own, and running it means to wait until the program reports its end.

use super::plan::Move;
use super::{LiveCall, Machine, Moment};
use crate::draft::Reply;
use crate::event::{
    FailureClass, LimitKind, MessageStatus, Note, Notice, NoticeCause, RequestOutcome, TurnEnded,
    TurnStatus,
};
use crate::id::TryId;
use crate::outer::{Wanted, wanted};
use crate::recover;
use crate::state::Turn;

impl Machine {
    /// Whether a program of its own runs the agent's turns.
    pub fn is_outer(&self) -> bool {
        self.agent.spec.is_outer()
    }

    /// Whether the process is ending and starts nothing new. A turn of an outer agent goes on to its end: it cannot
    /// continue in another process.
    pub(super) fn starts_nothing(&self) -> bool {
        self.live.process.stopping && !self.is_outer()
    }

    /// What the program is given next.
    pub fn wanted(&self) -> Option<Wanted> {
        let turn = self.agent.turn.as_ref()?.id;
        Some(wanted(&self.window, turn))
    }

    /// Whether the next request only waits for the rest of the program's answer.
    pub(super) fn listens(&self) -> bool {
        self.is_outer() && self.wanted() == Some(Wanted::Listen)
    }

    /// Nothing is in flight: delivers the prompts, waits for the rest of the answer, or ends the turn.
    pub(super) fn hear_child(
        &mut self,
        moment: &Moment<'_>,
        last_failure: Option<FailureClass>,
    ) -> Move {
        if let Some(limit) = self.live.turn.child_limited.take() {
            return self.limited_by_child(limit);
        }
        if !self.window.awaits_answer() {
            return match last_failure {
                Some(class) => self.fail(class),
                None if self.window.is_cut_off() => self.interrupt(),
                None => self.wrap_up(),
            };
        }
        if !self.listens() {
            // A turn that has begun in the program can only go on there, for example if a hook asks it to continue.
            let was_delivered = self.agent.turn.as_ref().is_some_and(Turn::was_delivered);
            if self.live.process.leaving || (self.live.process.stopping && !was_delivered) {
                return Move::Wait;
            }
            if self.take_commands() {
                return Move::Append;
            }
        }
        self.ask_model(moment)
    }

    /// This process ends before the program has answered.
    pub(super) fn child_left(&mut self, request: TryId, partial: Reply) {
        if !self.request_over(request, RequestOutcome::Interrupted, None, &partial) {
            return;
        }
        self.keep_partial(request, partial, MessageStatus::Interrupted);
        let (cause, text) = (NoticeCause::Restarted, recover::child_left());
        self.live.outbox.backlog.push(Notice { cause, text }.into());
        self.push_end(TurnEnded::with(TurnStatus::Interrupted));
    }

    /// The program has ended while the turn waited for the user: no request and no call would report it. While a call is
    /// being prepared it is not known yet whether the user will be asked.
    pub(super) fn child_gone(&mut self, why: String) {
        if !self.is_outer() || self.agent.turn.is_none() || self.live.request.sent.is_some() {
            return;
        }
        if self.live.calls.is_empty() {
            self.live.turn.child_gone = Some(why);
            self.live.turn.interrupting = true;
        } else if self.is_preparing() {
            self.live.turn.gone_while_preparing = Some(why);
        }
    }

    /// The turn ends as the program's own did. Its limits are not those of this agent.
    fn limited_by_child(&mut self, limit: LimitKind) -> Move {
        let text = "the limit is one of the agent's program: raise it with the program's own flags (`command.extra_args`), \
                    then continue";
        let (about, text) = (None, text.to_owned());
        self.live.outbox.backlog.push(Note { about, text }.into());
        self.limit(limit)
    }

    fn is_preparing(&self) -> bool {
        let mut calls = self.live.calls.values();
        calls.any(|call| *call == LiveCall::Preparing)
    }

    pub(super) fn fail_without_child(&mut self, text: String) -> Move {
        let about = None;
        self.live.outbox.backlog.push(Note { about, text }.into());
        self.fail(FailureClass::ProgramFailed)
    }
}
