//! Runs the calls of the newest reply in order, in parallel where that is safe.

use super::plan::Move;
use super::{Consent, Effect, LiveCall, Machine};
use crate::event::Decision;
use crate::message::{Arguments, Block, CallOutcome, ToolCall};
use crate::recover;

impl Machine {
    pub(super) fn run_tools(&mut self) -> Move {
        let Some(turn) = self.agent.turn.as_ref() else {
            return Move::Wait;
        };
        let (turn, started) = (turn.id, turn.calls.clone());
        let open: Vec<ToolCall> = self.window.open_calls().cloned().collect();
        let mut effects = self.replies();
        // Whether one more call may start. Calls that have started continue in any case.
        let mut free = true;
        for call in open {
            let parallel = self.is_parallel(&call.name);
            match self.live.calls.get(&call.id) {
                // Its start is durable now.
                Some(LiveCall::Prepared) => {
                    if let Some(started) = started.get(&call.id).cloned() {
                        self.live.calls.insert(call.id.clone(), LiveCall::Running);
                        effects.push(Effect::RunTool { call, started });
                    }
                }
                Some(_) => {}
                // A program whose process leaves is not told to run anything more.
                None if self.starts_nothing() || self.live.process.leaving => continue,
                None => {
                    let Arguments::Object(_) = call.arguments else {
                        self.refuse_malformed(&call);
                        continue;
                    };
                    free &= parallel || self.live.calls.is_empty();
                    if !free {
                        continue;
                    }
                    let decision = self.agent.approvals.of_call(turn, &call.id);
                    let consent = match decision.map(|approval| approval.decision) {
                        None => Consent::NotAsked,
                        Some(Some(Decision::Allow)) => Consent::Given,
                        Some(Some(Decision::Deny)) => {
                            self.deny(&call);
                            continue;
                        }
                        // It waits for approval, and the calls after it wait too.
                        Some(None) => {
                            free = false;
                            continue;
                        }
                    };
                    self.live.calls.insert(call.id.clone(), LiveCall::Preparing);
                    effects.push(Effect::PrepareTool { call, consent });
                }
            }
            free &= parallel;
        }
        if !effects.is_empty() {
            // Refusals in the backlog are appended right after this.
            Move::Do(effects)
        } else if self.live.outbox.backlog.is_empty() {
            Move::Wait
        } else {
            Move::Append
        }
    }

    fn refuse_malformed(&mut self, call: &ToolCall) {
        let text = "The arguments were not a JSON object; nothing was run. Send them again.";
        let blocks = vec![Block::text(text)];
        let result = recover::result(&call.id, CallOutcome::Error, blocks);
        self.live.outbox.backlog.extend(result);
    }

    fn deny(&mut self, call: &ToolCall) {
        let text = "The user denied this call; nothing was run.";
        let blocks = vec![Block::text(text)];
        let result = recover::result(&call.id, CallOutcome::Denied, blocks);
        self.live.outbox.backlog.extend(result);
    }

    /// After an interrupt: ends everything that is running, immediately and once.
    pub(super) fn cancel_what_runs(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.live.turn.interrupting && !self.live.process.leaving {
            return effects;
        }
        if let Some(request) = self.live.request.sent
            && !std::mem::replace(&mut self.live.request.cancelling, true)
        {
            effects.push(Effect::CancelRequest { request });
        }
        if !self.live.turn.interrupting {
            return effects;
        }
        // Calls that have not started are dropped.
        self.live
            .calls
            .retain(|_, state| matches!(state, LiveCall::Running | LiveCall::Cancelling));
        for (call, state) in &mut self.live.calls {
            if *state == LiveCall::Running {
                *state = LiveCall::Cancelling;
                effects.push(Effect::CancelTool { call: call.clone() });
            }
        }
        effects
    }
}
