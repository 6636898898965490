//! What the daemon does by itself and for its clients: it starts and stops processes, and advances a reset
//! by one step. It looks at the journal alone, so whatever was in progress when it was killed continues.

use super::Sim;
use agentd_core::begin::{Line, Refused};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{
    After, AgentFailed, AgentStarted, AgentStopped, FailCause, ResetBegan, ResetRefusal,
    ResetSource, ResetStep, ResetTo,
};
use agentd_core::id::{ConversationId, OpId};
use agentd_core::link::Order;
use agentd_core::reset::{self, Begin, Next};
use agentd_core::state::{Outcome, Reset};

/// A client's request for a reset.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub way: Way,
    pub keep_queue: bool,
    pub force: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Way {
    Fresh,
    Undo,
    Redo,
    /// From this many events before the newest of the current conversation.
    Rewind(u8),
    /// The same, of any conversation.
    RewindAnywhere(u8),
}

/// A reset as the client that requested it sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub order: ResetBegan,
    pub answer: Option<Result<Outcome, Refused>>,
}

impl Sim {
    pub(super) fn ask_reset(&mut self, wanted: Wanted) {
        if self.daemon.is_none() {
            return;
        }
        let op = OpId::new(self.new_id());
        let to = match wanted.way {
            Way::Fresh => ResetTo::Fresh,
            Way::Undo => ResetTo::Undo,
            Way::Redo => ResetTo::Redo,
            Way::Rewind(back) => {
                let current = self.kept.state().tree.current();
                let own = self.kept.events.iter().rev();
                let mut own = own.filter(|event| Some(event.conversation) == current);
                let Some(event) = own.nth(usize::from(back)) else {
                    return;
                };
                let (at, conversation) = (event.seq, None);
                ResetTo::Rewind { at, conversation }
            }
            Way::RewindAnywhere(back) => match self.some_branch_point(back) {
                Some(BranchPoint { conversation, at }) => {
                    let conversation = Some(conversation);
                    ResetTo::Rewind { at, conversation }
                }
                None => return,
            },
        };
        let order = ResetBegan {
            op,
            to,
            force: wanted.force,
            kill_background: false,
            keep_queue: wanted.keep_queue,
            clear_log: false,
            skip_hooks: false,
            grace_ms: 15_000,
            was_awake: self.runtime.is_some(),
            source: ResetSource::User,
        };
        let answer = None;
        self.resets.push(Asked { order, answer });
        self.ask_again(self.resets.len() - 1);
    }

    /// A client asks until it is told how its reset ended, and sometimes once more.
    pub(super) fn ask_again(&mut self, index: usize) {
        let Some(asked) = self.resets.get(index).cloned() else {
            return;
        };
        if self.daemon.is_none() {
            return;
        }
        let answer = match reset::begin(self.kept.state(), asked.order) {
            Ok(Begin::Append(line)) => {
                self.commit(None, vec![line]);
                None
            }
            Ok(Begin::UnderWay) => None,
            Ok(Begin::Over(outcome)) => Some(Ok(outcome)),
            Err(refused) => Some(Err(refused)),
        };
        if let Some(Ok(before)) = asked.answer {
            assert_eq!(answer, Some(Ok(before)), "an op has one outcome");
        }
        if let Some(asked) = self.resets.get_mut(index) {
            asked.answer = answer;
        }
    }

    pub(super) fn stop_agent(&mut self) {
        if self.daemon.is_some() && !self.kept.state().stopped {
            self.write([AgentStopped {}.into()]);
        }
    }

    pub(super) fn start_agent(&mut self) {
        let state = self.kept.state();
        if self.daemon.is_some() && (state.stopped || state.failed.is_some()) {
            self.write([AgentStarted {}.into()]);
        }
    }

    /// Its process does not stay alive: the daemon stops trying until a user starts it.
    pub(super) fn give_up(&mut self) {
        let is_down = self.daemon.is_some() && self.runtime.is_none();
        if is_down && self.kept.state().after() == After::Crash {
            let cause = FailCause::CrashLoop;
            self.write([AgentFailed { cause }.into()]);
        }
    }

    /// The time limit of the foreground calls has passed.
    pub(super) fn grace_over(&mut self) {
        let state = self.kept.state();
        let Some(under_way) = state.resets.under_way() else {
            return;
        };
        if self.daemon.is_none() || reset::next(state) != Next::Stop {
            return;
        }
        if under_way.order.force {
            self.kill_runtime();
        } else if let Some(line) = reset::withdraw(state, ResetRefusal::StillActive) {
            self.commit(None, vec![line]);
        }
    }

    /// An idle runtime is put to sleep.
    pub(super) fn sleep(&mut self) {
        let state = self.kept.state();
        let is_idle = state.turn.is_none() && state.inbox.waiting().len() == 0;
        if is_idle || state.waits_for_user() {
            self.tell_to_stop();
        }
    }

    /// The runtime must end, whatever it is doing; the next one continues its work.
    pub(super) fn tell_to_stop(&mut self) -> bool {
        if self
            .daemon
            .as_ref()
            .is_none_or(|daemon| daemon.told_to_stop)
        {
            return false;
        }
        let told = self.order(Order::Stop);
        if let (true, Some(daemon)) = (told, &mut self.daemon) {
            daemon.told_to_stop = true;
        }
        told
    }

    /// The daemon looks at the journal, and does one thing that is due. False if nothing is.
    pub(super) fn tick(&mut self) -> bool {
        if self.daemon.is_none() {
            return false;
        }
        if self.make_auto_reset() {
            return true;
        }
        let state = self.kept.state();
        // First a process that ends the turn; an agent that should be off is told to end.
        if self.runtime.is_none() && state.needs_process() {
            self.start_runtime();
            return true;
        }
        let is_off = state.stopped || state.resets.under_way().is_some();
        if is_off && state.turn.is_none() && self.runtime.is_some() && self.tell_to_stop() {
            return true;
        }
        self.go_on_with_reset()
    }

    fn go_on_with_reset(&mut self) -> bool {
        let state = self.kept.state();
        let wakes = |reset: &Reset| reset.order.was_awake && !state.stopped;
        let wakes = state.resets.under_way().is_some_and(wakes);
        let lines: Vec<Line> = match reset::next(state) {
            Next::Nothing => return false,
            Next::Hooks(step) => reset::stepped(state, step).into_iter().collect(),
            Next::Stop if state.turn.is_some() || self.runtime.is_some() => return false,
            Next::Stop => reset::stepped(state, ResetStep::Stop).into_iter().collect(),
            Next::Switch => self.switch(),
            Next::End => reset::end(state).into_iter().collect(),
        };
        self.commit(None, lines);
        let is_over = self.kept.state().resets.under_way().is_none();
        if is_over && wakes {
            self.start_runtime();
        }
        true
    }

    fn switch(&mut self) -> Vec<Line> {
        let new = ConversationId::new(self.new_id());
        let (state, window) = (self.kept.state(), self.kept.window());
        let under_way = state.resets.under_way().expect("a reset is under way");
        let seen = match under_way.order.to {
            ResetTo::Rewind { at, conversation } => {
                let conversation = conversation.unwrap_or(under_way.old);
                self.kept.window_at(conversation, at)
            }
            _ => Default::default(),
        };
        reset::switch(state, &window, &seen, new).expect("nothing is in the way any more")
    }
}
