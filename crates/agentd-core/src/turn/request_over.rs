//! How a request to the model ends: what it cost, and what is kept of its reply.

use super::Machine;
use crate::budget::charge_without_usage;
use crate::draft::Reply;
use crate::event::{
    FailureClass, MessageAdded, MessageStatus, Purpose, RequestEnded, RequestOutcome,
};
use crate::id::TryId;
use crate::usage::{MicroUsd, Usage};

impl Machine {
    /// The partial reply of an attempt that is repeated is superseded. The partial reply of the last attempt is kept
    /// as interrupted.
    pub(super) fn failed(&mut self, request: TryId, class: FailureClass, partial: Reply) {
        let overflowed = class == FailureClass::ContextOverflow;
        match self.purpose_of(request) {
            Some(Purpose::Compact) if !class.is_transient() => {
                self.live.turn.compaction_failed = true;
                self.live.turn.forgiven = true;
            }
            Some(Purpose::Answer) if overflowed => self.live.turn.overflowed = true,
            _ => {}
        }
        let failures = self.agent.turn.as_ref().map_or(0, |turn| turn.failures) + 1;
        let again = class.is_transient() || overflowed;
        let again = again && failures < self.policy.max_failures && !self.live.turn.interrupting;
        let status = if again {
            MessageStatus::Superseded
        } else {
            MessageStatus::Interrupted
        };
        self.keep_partial(request, partial, status);
    }

    pub(super) fn purpose_of(&self, request: TryId) -> Option<Purpose> {
        let in_flight = self.agent.turn.as_ref()?.in_flight?;
        (in_flight.request == request).then_some(in_flight.purpose)
    }

    /// Records how a request ended. Returns false if it is not the request in flight.
    pub(super) fn request_over(
        &mut self,
        request: TryId,
        outcome: RequestOutcome,
        usage: Option<Usage>,
        reply: &Reply,
    ) -> bool {
        if self.live.request.sent != Some(request) {
            return false;
        }
        let Some(in_flight) = self.agent.turn.as_ref().and_then(|turn| turn.in_flight) else {
            return false;
        };
        self.live.request.sent = None;
        self.live.request.cancelling = false;
        self.live.outbox.ends = Some(request);
        let is_free = usage.is_none() && outcome.is_free();
        let is_outer = self.is_outer();
        let (charged, cost) = match is_free {
            // Only its program knows what it uses, also in a turn that failed or was interrupted.
            _ if is_outer => {
                let reported = self.live.request.usage.take();
                let used = usage.or(reported).unwrap_or_default();
                (used, self.live.request.cost.take())
            }
            true => (Usage::default(), Some(MicroUsd::default())),
            false => {
                let estimate = || charge_without_usage(&in_flight.grant, reply.written_bytes());
                let charged = usage.unwrap_or_else(estimate);
                (charged, self.policy.price.map(|price| price.of(&charged)))
            }
        };
        self.live.outbox.backlog.push(
            RequestEnded {
                request,
                outcome,
                usage: charged,
                estimated: usage.is_none() && !is_free && !is_outer,
                cost,
                provider_request: None,
            }
            .into(),
        );
        true
    }

    /// Records the part of a reply that had arrived when it was cut off. The model never sees a partial summary.
    pub(super) fn keep_partial(&mut self, request: TryId, partial: Reply, status: MessageStatus) {
        let blocks = partial.cut();
        if blocks.is_empty() {
            return;
        }
        let status = match self.purpose_of(request) {
            Some(Purpose::Compact) => MessageStatus::Superseded,
            _ => status,
        };
        self.live.outbox.backlog.push(
            MessageAdded {
                request: Some(request),
                status,
                stop: None,
                blocks,
            }
            .into(),
        );
    }
}
