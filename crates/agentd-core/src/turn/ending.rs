//! The ways a turn ends.

use super::Machine;
use super::plan::Move;
use crate::draft::Reply;
use crate::event::{Notice, NoticeCause, RequestEnded, RequestOutcome, TurnEnded, TurnStatus};
use crate::id::TryId;
use crate::message::{Block, CallOutcome};
use crate::recover::{self, session_latest};
use crate::usage::{MicroUsd, Usage};

impl Machine {
    pub(super) fn complete(&mut self) -> Move {
        self.end_turn(TurnEnded::with(TurnStatus::Completed))
    }

    pub(super) fn end_turn(&mut self, ended: TurnEnded) -> Move {
        self.push_end(ended);
        Move::Append
    }

    /// Adds the end of the turn to the next append.
    pub(super) fn push_end(&mut self, ended: TurnEnded) {
        let compacts = self.compacts();
        let ended = TurnEnded { compacts, ..ended };
        self.live.outbox.backlog.push(ended.into());
        self.live.outbox.backlog.push(session_latest());
    }

    /// Waits until nothing is running, then closes the turn so that the next prompt is answered.
    pub(super) fn interrupt(&mut self) -> Move {
        if self.live.request.sent.is_some() || !self.live.calls.is_empty() {
            return Move::Wait;
        }
        self.unsend();
        let open: Vec<_> = self
            .window
            .open_calls()
            .map(|call| call.id.clone())
            .collect();
        let text = match self.live.turn.limited {
            Some(_) => "Not run: the turn reached its time limit.",
            None if self.live.turn.child_gone.is_some() => {
                "Not run: the agent's program ended before it was approved."
            }
            None => "Not run: the user interrupted the turn.",
        };
        for call in open {
            let blocks = vec![Block::text(text)];
            let result = recover::result(&call, CallOutcome::Interrupted, blocks);
            self.live.outbox.backlog.extend(result);
        }
        if let Some(limited) = self.live.turn.limited {
            return self.run_out_of_time(limited);
        }
        if let Some(why) = self.live.turn.child_gone.take() {
            return self.fail_without_child(why);
        }
        let (cause, who) = match &self.live.turn.halted {
            Some(reason) => (
                NoticeCause::Hook,
                format!("A hook ended this turn: {reason}"),
            ),
            None => {
                let who = "The user interrupted this turn.".to_owned();
                (NoticeCause::Interrupted, who)
            }
        };
        if !self.compacts() {
            let rest = "Do not continue it unless asked to; answer the next message.";
            let text = format!("{who} {rest}");
            self.live.outbox.backlog.push(Notice { cause, text }.into());
        }
        self.end_turn(TurnEnded::with(TurnStatus::Interrupted))
    }

    /// A request whose reply this process no longer waits for. It is recorded as after a crash, because the turn
    /// continues in the same way.
    pub(super) fn left_behind(&mut self, request: TryId, partial: &Reply) {
        let in_flight = self.agent.turn.as_ref().and_then(|turn| turn.in_flight);
        let Some(in_flight) = in_flight.filter(|_| self.live.request.sent == Some(request)) else {
            return;
        };
        self.live.request.sent = None;
        self.live.request.cancelling = false;
        self.live.outbox.ends = Some(request);
        let left = recover::request_left(&in_flight, partial, self.policy.price);
        self.live.outbox.backlog.extend(left);
    }

    /// Cancels a request that is recorded and has not been sent. Returns false if there is none.
    pub(super) fn unsend(&mut self) -> bool {
        let in_flight = self.agent.turn.as_ref().and_then(|turn| turn.in_flight);
        let Some(in_flight) = in_flight.filter(|_| self.live.request.sent.is_none()) else {
            return false;
        };
        let usage = Usage::default();
        self.live.outbox.ends = Some(in_flight.request);
        self.live.outbox.backlog.push(
            RequestEnded {
                request: in_flight.request,
                outcome: RequestOutcome::Interrupted,
                usage,
                estimated: false,
                cost: Some(MicroUsd::default()),
                provider_request: None,
            }
            .into(),
        );
        true
    }
}
