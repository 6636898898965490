//! What the daemon does with the process and with a reset: one step at a time, each recorded in the journal.

use super::JournalDriver;
use crate::journal::ops::ReplyOp;
use agentd_core::event::*;
use agentd_core::id::*;
use agentd_core::reset::{self, Begin, Next};
use agentd_core::turn::Input;

impl JournalDriver {
    pub(super) fn begin_reset(&mut self, to: ResetTo, keep_queue: bool) {
        let order = ResetBegan {
            op: OpId::new(self.source.uuid()),
            to,
            force: false,
            kill_background: false,
            keep_queue,
            clear_log: false,
            skip_hooks: false,
            grace_ms: 1000,
            was_awake: !self.is_at_rest(),
            source: ResetSource::User,
        };
        // What is refused does nothing.
        if let Ok(Begin::Append((conversation, body))) = reset::begin(self.machine.agent(), order) {
            self.write(conversation, [body]);
        }
    }

    /// Runs all steps of a reset, if one may begin now.
    pub(super) fn reset(&mut self, to: ResetTo, keep_queue: bool) {
        self.begin_reset(to, keep_queue);
        // Steps, the end of a turn and of a process: it is over long before that.
        for _ in 0..20 {
            self.step_reset();
            self.supervise();
        }
    }

    pub(super) fn step_reset(&mut self) {
        let state = self.machine.agent();
        let line = match reset::next(state) {
            Next::Nothing => return,
            Next::Hooks(step) => reset::stepped(state, step),
            Next::Stop if state.turn.is_some() => None,
            Next::Stop if !self.is_at_rest() => return self.step(Input::Stop),
            Next::Stop => reset::stepped(state, ResetStep::Stop),
            Next::Switch => return self.switch(),
            Next::End => reset::end(state),
        };
        if let Some((conversation, body)) = line {
            self.write(conversation, [body]);
        }
        let agent = self.machine.agent();
        if agent.resets.under_way().is_none() && !agent.stopped {
            self.take_over(agent.after(), ReplyOp::default(), &[]);
        }
    }

    fn switch(&mut self) {
        let new = ConversationId::new(self.source.uuid());
        let (state, window) = self.fold();
        let seen = match state.resets.under_way().map(|reset| reset.order.to) {
            Some(ResetTo::Rewind { at, .. }) => self.seen(at),
            _ => Default::default(),
        };
        let Ok(lines) = reset::switch(&state, &window, &seen, new) else {
            return;
        };
        for (conversation, body) in lines {
            self.write(conversation, [body]);
        }
    }

    pub(super) fn withdraw_reset(&mut self) {
        let why = ResetRefusal::StillActive;
        if let Some((conversation, body)) = reset::withdraw(self.machine.agent(), why) {
            self.write(conversation, [body]);
        }
    }

    pub(super) fn stop_agent(&mut self) {
        let current = self.current();
        self.write(current, [AgentStopped {}.into()]);
        self.step(Input::Stop);
    }

    pub(super) fn start_agent(&mut self) {
        let current = self.current();
        self.write(current, [AgentStarted {}.into()]);
    }

    /// No process has the agent.
    pub(super) fn is_at_rest(&self) -> bool {
        self.machine.agent().at_rest
    }

    /// The process says that it ends by itself.
    pub(super) fn end_incarnation(&mut self) {
        let incarnation = self.machine.agent().incarnation;
        let current = self.current();
        self.write(current, [IncarnationEnded { incarnation }.into()]);
        self.forget_live();
    }

    /// Starts a process if the agent needs one.
    pub(super) fn supervise(&mut self) {
        let agent = self.machine.agent();
        if agent.at_rest && agent.needs_process() {
            self.take_over(agent.after(), ReplyOp::default(), &[]);
        }
    }
}
