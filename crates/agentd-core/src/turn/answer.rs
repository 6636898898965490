//! Requests to the model: limits, compaction, retries.

use super::plan::Move;
use super::{Backoff, Built, Effect, Machine, Moment};
use crate::budget;
use crate::compaction;
use crate::event::{
    Context, FailureClass, Grant, LimitKind, Note, PauseReason, Position, Purpose, RequestSent,
    TurnPaused,
};
use crate::id::TryId;
use crate::request::{self, Request, estimate_tokens};

/// A compaction keeps at most one in this many tokens unchanged, of the current window. The model's window may be
/// unknown, or larger than where compaction begins.
const KEEP_SHARE: u64 = 4;

/// What a request may spend that only waits for the rest of an answer: what it costs was granted before.
const NOTHING: Grant = Grant {
    input_tokens: 0,
    output_tokens: 0,
    cost: None,
};

impl Machine {
    /// The whole request must be durable before it is sent.
    pub(super) fn ask_model(&mut self, moment: &Moment<'_>) -> Move {
        if let Some(stop) = self.after_failure() {
            return stop;
        }
        if let Some(text) = &self.policy.missing_key {
            let (about, text) = (None, text.clone());
            let reason = PauseReason::MissingKey;
            self.live.outbox.backlog.push(Note { about, text }.into());
            self.live.outbox.backlog.push(TurnPaused { reason }.into());
            return Move::Append;
        }
        if let Some(context) = self.changed_context() {
            self.live.outbox.backlog.push(context.into());
            return Move::Append;
        }
        let (purpose, request) = match self.choose() {
            Ok(chosen) => chosen,
            Err(class) => return self.too_large(class),
        };
        if purpose == Purpose::Compact {
            match self.may_compact(self.compaction_cut()) {
                Err(wait) => return wait,
                Ok(None) => {}
                Ok(Some(reason)) if self.compacts() => return self.refuse(reason),
                Ok(Some(_)) => {
                    // Handled like a compaction that would not help: not tried again in this turn.
                    self.live.turn.compaction_failed = true;
                    return Move::Append;
                }
            }
        }
        let input_tokens = estimate_tokens(&request);
        let max_output_tokens = budget::room_for_output(
            request.context.max_output_tokens,
            input_tokens,
            self.policy.model_window,
        );
        let granted = match self.listens() {
            true => Ok(NOTHING),
            false => budget::grant(
                &self.agent,
                moment.at,
                input_tokens,
                max_output_tokens,
                self.policy.price,
            ),
        };
        let built = Box::new(request);
        match granted {
            Err(limit) => self.limit(limit),
            Ok(grant) => {
                self.live.request.tries += 1;
                let request = TryId {
                    incarnation: self.agent.incarnation,
                    n: self.live.request.tries,
                };
                self.live.request.built = Some(Built {
                    id: request,
                    items: self.window.items().len(),
                    request: built,
                });
                self.live.outbox.backlog.push(
                    RequestSent {
                        request,
                        purpose,
                        grant,
                    }
                    .into(),
                );
                Move::Append
            }
        }
    }

    /// The context of the next request, if it differs from the one in the journal.
    fn changed_context(&self) -> Option<Context> {
        let wanted = self.wanted_context();
        let Some(known) = self.window.context() else {
            return Some(wanted);
        };
        if *known == wanted {
            return None;
        }
        let wanted = wanted.keeping(known);
        (*known != wanted).then_some(wanted)
    }

    /// The recorded request as it was built when it was decided on. It is built again if the window has grown since.
    fn built(&mut self, id: TryId, purpose: Purpose) -> Option<Request> {
        let built = self.live.request.built.take();
        let built =
            built.filter(|built| built.id == id && built.items == self.window.items().len());
        match built {
            Some(built) => {
                debug_assert_eq!(Some(&*built.request), self.request(purpose).as_ref());
                Some(*built.request)
            }
            None => self.request(purpose),
        }
    }

    /// Sends the recorded request, once.
    pub(super) fn send(&mut self) -> Move {
        let Some(in_flight) = self.agent.turn.as_ref().and_then(|turn| turn.in_flight) else {
            return Move::Wait;
        };
        // Recovery handles a request of another incarnation.
        if self.live.request.sent.is_some()
            || in_flight.request.incarnation != self.agent.incarnation
        {
            return Move::Wait;
        }
        let Some(mut request) = self.built(in_flight.request, in_flight.purpose) else {
            return Move::Wait;
        };
        request.context.max_output_tokens = in_flight.grant.output_tokens;
        self.live.request.sent = Some(in_flight.request);
        self.live.turn.forgiven = false;
        if in_flight.purpose == Purpose::Compact {
            // What arrives from here on is not in the summary, and the summary must not replace it.
            self.live.request.cut = self.compaction_cut();
        }
        Move::Do(vec![Effect::Send {
            request_id: in_flight.request,
            request: Box::new(request),
        }])
    }

    fn request(&self, purpose: Purpose) -> Option<Request> {
        let context = self.window.context()?;
        match purpose {
            Purpose::Answer => request::answer(&self.window, context),
            Purpose::Compact => {
                let through = self.compaction_cut()?;
                let instruction = self.window.instruction().filter(|_| self.compacts());
                Some(request::summary(
                    &self.window,
                    context,
                    through,
                    instruction,
                ))
            }
        }
    }

    /// An answer, or first a summary if the answer would not fit.
    fn choose(&self) -> Result<(Purpose, Request), FailureClass> {
        let overflow = FailureClass::ContextOverflow;
        if self.is_outer() {
            let answer = self.request(Purpose::Answer).ok_or(overflow)?;
            return Ok((Purpose::Answer, answer));
        }
        if self.compacts() {
            let summary = self.request(Purpose::Compact);
            return summary
                .map(|summary| (Purpose::Compact, summary))
                .ok_or(overflow);
        }
        let overflowed = self.live.turn.overflowed;
        let answer = self.request(Purpose::Answer).ok_or(overflow)?;
        let estimated = estimate_tokens(&answer);
        let due = self.policy.model_window.is_some_and(|window| {
            compaction::is_due(estimated, window, self.agent.spec.compact_at)
                // If a long system prompt or the turn's own prompt fills the window, a summary would save too little.
                && self.compaction_gain() >= estimated / KEEP_SHARE
        });
        if !overflowed && !due {
            return Ok((Purpose::Answer, answer));
        }
        match self.request(Purpose::Compact) {
            Some(summary) if !self.live.turn.compaction_failed => Ok((Purpose::Compact, summary)),
            // Close to the limit is not over it: let the provider decide.
            _ if !overflowed => Ok((Purpose::Answer, answer)),
            Some(_) => Err(overflow),
            None => Err(FailureClass::TurnTooLarge),
        }
    }

    /// About how many tokens a summary would replace.
    fn compaction_gain(&self) -> u64 {
        let cut = self.compaction_cut();
        cut.map_or(0, |cut| compaction::replaced_tokens(&self.window, cut))
    }

    /// No request fits. If the content of this turn is the reason, records a note about it.
    fn too_large(&mut self, class: FailureClass) -> Move {
        if class == FailureClass::TurnTooLarge {
            let text = "the prompt and the tool results that the model has not seen yet are larger than \
                        the model's window, and they are never shortened: send less at once, put the text \
                        into a file that the agent can read in parts, or choose a model with a larger window";
            let (about, text) = (None, text.to_owned());
            self.live.outbox.backlog.push(Note { about, text }.into());
        }
        self.fail(class)
    }

    pub(super) fn compaction_cut(&self) -> Option<Position> {
        let keep = match self.compacts() {
            // A compaction that the user requested covers as much as possible.
            true => 0,
            false => compaction::size(&self.window) / KEEP_SHARE,
        };
        compaction::cut(&self.window, keep)
    }

    /// Whether the turn performs a compaction that the user requested.
    pub(super) fn compacts(&self) -> bool {
        let turn = self.agent.turn.as_ref();
        turn.is_some_and(|turn| turn.compacts.is_some())
    }

    /// Such a turn requests one summary and then ends.
    pub(super) fn compact(&mut self, moment: &Moment<'_>) -> Move {
        if self.is_outer() {
            let why = "this agent's program keeps its own context; only the program can compact it";
            return self.refuse(why.to_owned());
        }
        let turn = self.agent.turn.as_ref();
        let is_made = turn.is_some_and(|turn| turn.compacted);
        if is_made && let Some(told) = self.after_compaction() {
            return told;
        }
        let turn = self.agent.turn.as_ref();
        if is_made || self.compaction_cut().is_none() {
            return self.complete();
        }
        if self.live.turn.compaction_failed {
            // An empty reply is not a summary either.
            let class = turn.and_then(|turn| turn.last_failure);
            return self.fail(class.unwrap_or(FailureClass::Refused));
        }
        match self.live.process.stopping {
            true => Move::Wait,
            false => self.ask_model(moment),
        }
    }

    /// Whether the last failure ends the turn, requires a wait, or allows the next request.
    fn after_failure(&mut self) -> Option<Move> {
        let turn = self.agent.turn.as_ref()?;
        let class = turn.last_failure?;
        let failures = turn.failures;
        if self.live.turn.forgiven {
            return None;
        }
        match self.live.turn.backoff {
            Backoff::Waiting => return Some(Move::Wait),
            // There was a crash after the failure, and the wait is over as well.
            Backoff::None => {}
            Backoff::Wanted(at_least_ms) if class.is_transient() => {
                if failures < self.policy.max_failures {
                    self.live.turn.backoff = Backoff::Waiting;
                    return Some(Move::Do(vec![Effect::Backoff {
                        failures,
                        at_least_ms,
                    }]));
                }
            }
            Backoff::Wanted(_) => self.live.turn.backoff = Backoff::None,
        }
        let gives_up = failures >= self.policy.max_failures;
        let hopeless = !class.is_transient() && class != FailureClass::ContextOverflow;
        (gives_up || hopeless).then(|| self.fail(class))
    }

    pub(super) fn limit(&mut self, limit: LimitKind) -> Move {
        self.end_turn(crate::event::TurnEnded {
            limit: Some(limit),
            ..crate::event::TurnEnded::with(crate::event::TurnStatus::Limited)
        })
    }

    pub(super) fn fail(&mut self, class: FailureClass) -> Move {
        self.end_turn(crate::event::TurnEnded {
            failure: Some(class),
            ..crate::event::TurnEnded::with(crate::event::TurnStatus::Failed)
        })
    }
}
