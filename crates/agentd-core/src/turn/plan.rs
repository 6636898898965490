//! What to do next, given the state.

use super::{Effect, Hooks, Machine, Moment};
use crate::event::{
    Body, NewEvent, PromptMode, PromptsTaken, TurnContinued, TurnEnded, TurnStarted, TurnStatus,
};
use crate::id::{CallId, TurnId};
use crate::subagents;

/// The result of one look at the state.
pub(super) enum Move {
    /// Events must become durable first.
    Append,
    Do(Vec<Effect>),
    /// Wait for the next input.
    Wait,
}

impl Machine {
    pub(super) fn plan(&mut self, moment: &mut Moment<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.live.process.reloaded {
            return self.reload();
        }
        if self.live.process.stopped {
            return effects;
        }
        self.ask(moment.new_id);
        self.keep_time(moment.at);
        loop {
            // Cancelling does not wait for the append.
            effects.extend(self.cancel_what_runs());
            if self.live.outbox.appending {
                return effects;
            }
            if !self.live.outbox.backlog.is_empty() {
                effects.push(self.append(moment));
                return effects;
            }
            match self.next_move(moment) {
                Move::Append => {}
                Move::Do(more) if more.is_empty() => return effects,
                Move::Do(more) => effects.extend(more),
                Move::Wait => {
                    effects.extend(self.stopped());
                    return effects;
                }
            }
        }
    }

    fn next_move(&mut self, moment: &mut Moment<'_>) -> Move {
        // It applies only to this look at the state: a running turn does not need it.
        let continue_asked = std::mem::take(&mut self.live.continue_asked);
        let Some(turn) = &self.agent.turn else {
            let resumes = if continue_asked {
                self.limited_turn()
            } else {
                None
            };
            return self.between_turns(moment, resumes);
        };
        if self.live.turn.interrupting {
            return self.interrupt();
        }
        if turn.is_empty() {
            return self.end_turn(TurnEnded {
                withdrawn: true,
                ..TurnEnded::with(TurnStatus::Interrupted)
            });
        }
        if turn.paused.is_some() && continue_asked {
            self.live.outbox.backlog.push(TurnContinued {}.into());
            return Move::Append;
        }
        if turn.paused.is_some() {
            return Move::Wait;
        }
        if turn.in_flight.is_some() {
            if self.starts_nothing() && self.unsend() {
                return Move::Append;
            }
            return self.send();
        }
        if self.window.has_open_calls() {
            return self.run_tools();
        }
        let (last_failure, compacts) = (turn.last_failure, turn.compacts.is_some());
        if compacts {
            return self.compact(moment);
        }
        if self.is_outer() {
            return self.hear_child(moment, last_failure);
        }
        if self.tell_of_tasks() {
            return Move::Append;
        }
        if let Some(joined) = self.take_steering() {
            return joined;
        }
        if let Some(told) = self.after_compaction() {
            return told;
        }
        if self.window.awaits_answer() {
            if self.live.process.stopping {
                return Move::Wait;
            }
            if self.take_commands() {
                return Move::Append;
            }
            if let Some(told) = self.environment_first() {
                return told;
            }
            if let Some(told) = self.plan_first() {
                return told;
            }
            if let Some(first) = self.mcp_first() {
                return first;
            }
            return match self.instructions_first() {
                Some(first) => first,
                None => self.ask_model(moment),
            };
        }
        match last_failure {
            // A partial reply of the last attempt is not an answer.
            Some(class) => self.fail(class),
            // Neither is a reply that an interrupt cut off, if a crash prevented the end of the turn from being
            // recorded.
            None if self.window.is_cut_off() => self.interrupt(),
            None => self.wrap_up(),
        }
    }

    fn between_turns(&mut self, moment: &mut Moment<'_>, resumes: Option<TurnId>) -> Move {
        // Also if the process is to end: the turn is not over before.
        if let Some(scan) = self.scan_first(moment) {
            // `continue` was requested: it is carried out afterwards.
            self.live.continue_asked |= resumes.is_some();
            return scan;
        }
        let is_restoring = self.agent.files.restoring.is_some();
        if self.live.process.stopping || self.agent.is_held_back() || is_restoring {
            return Move::Wait;
        }
        if self.tell_of_tasks() {
            // `continue` was requested: it is carried out afterwards.
            self.live.continue_asked |= resumes.is_some();
            return Move::Append;
        }
        if self.live.holds_turns {
            self.live.continue_asked |= resumes.is_some();
            return Move::Wait;
        }
        if let (None, Some(op)) = (resumes, self.agent.compactions.asked()) {
            self.live.outbox.next_turn = Some(TurnId::new((moment.new_id)()));
            self.live.outbox.starting = true;
            let compacts = Some(op);
            let resumes = None;
            let started = TurnStarted { resumes, compacts };
            self.live.outbox.backlog.push(started.into());
            return Move::Append;
        }
        let next = self
            .agent
            .inbox
            .waiting()
            .next()
            .map(|queued| queued.prompt);
        if resumes.is_none() && next.is_none() {
            return Move::Wait;
        }
        // Hooks check the prompt before the turn begins.
        let taken = match next.filter(|_| resumes.is_none()) {
            Some(prompt) if self.is_unwanted(prompt) => return self.drop_prompt(moment, prompt),
            Some(prompt) => match self.judge(None, prompt) {
                Ok(verdict) => Some((prompt, verdict)),
                Err(wait) => return wait,
            },
            None => None,
        };
        self.live.outbox.next_turn = Some(TurnId::new((moment.new_id)()));
        self.live.outbox.starting = true;
        let compacts = None;
        let started = TurnStarted { resumes, compacts };
        self.live.outbox.backlog.push(started.into());
        self.take_commands();
        if let Some((prompt, verdict)) = taken
            && let Some(reason) = self.submit(prompt, verdict)
        {
            return self.refuse(reason);
        }
        Move::Append
    }

    /// Reports which tasks have ended, at a position where this does not separate a call from its result.
    fn tell_of_tasks(&mut self) -> bool {
        let ended = std::mem::take(&mut self.live.ended_tasks);
        let any = !ended.is_empty();
        self.live.outbox.backlog.extend(ended);
        any
    }

    /// The turn that `continue` resumes.
    fn limited_turn(&self) -> Option<TurnId> {
        let last = self.agent.last_turn.as_ref()?;
        let here = self.agent.tree.current() == Some(last.conversation);
        (here && last.status == TurnStatus::Limited).then_some(last.id)
    }

    /// Prompts that join the turn at this boundary.
    fn take_steering(&mut self) -> Option<Move> {
        if self.live.process.stopping {
            return None;
        }
        let joining = self.waiting();
        let joining = joining.filter(|queued| queued.mode == PromptMode::Steer);
        let prompts: Vec<_> = joining.map(|queued| queued.prompt).collect();
        let first = *prompts.first()?;
        if self.policy.hooks == Hooks::Asked {
            return Some(self.steer(first));
        }
        self.take_commands();
        self.live
            .outbox
            .backlog
            .push(PromptsTaken { prompts }.into());
        Some(Move::Append)
    }

    fn append(&mut self, moment: &Moment<'_>) -> Effect {
        let outbox = &mut self.live.outbox;
        let under_way = self.agent.turn.as_ref().map(|turn| turn.id);
        let turn = outbox.next_turn.take().or(under_way);
        // If there is something to append, a conversation has begun.
        let conversation = self.agent.tree.current().unwrap_or(NO_CONVERSATION);
        let event = |body: Body| NewEvent {
            at: moment.at,
            conversation,
            turn,
            body,
        };
        outbox.appending = true;
        Effect::Append {
            events: outbox.backlog.drain(..).map(event).collect(),
            ends: outbox.ends.take(),
        }
    }

    fn reload(&mut self) -> Vec<Effect> {
        let current = self.agent.tree.current_conversation();
        let reload = current.map(|conversation| Effect::Reload {
            conversation: conversation.id,
            through: conversation.head,
        });
        reload.into_iter().collect()
    }

    /// Whether a call waits for a subagent. Another process can wait for it as well.
    fn waits_for_subagent(&self, call: &CallId) -> bool {
        let turn = self.agent.turn.as_ref();
        let started = turn.and_then(|turn| turn.calls.get(call));
        started.is_some_and(|started| started.tool == subagents::TOOL)
    }

    /// Whether the user's answer, or that of the hooks, must reach a program that only this process has. Not if the process
    /// leaves at once, or the agent is to stop: the turn ends then.
    fn is_awaited_by_program(&self) -> bool {
        let Some(turn) = &self.agent.turn else {
            return false;
        };
        let waits_for_hooks = self.is_outer() && self.live.turn.asked.is_some();
        self.agent.waits_in_program(turn)
            && (self.agent.waits_for_user() || waits_for_hooks)
            && !self.live.process.leaving
            && !self.agent.stopped
    }

    fn stopped(&mut self) -> Option<Effect> {
        let in_hand = self.live.request.sent.is_some()
            || self.is_scanning()
            || self
                .live
                .calls
                .keys()
                .any(|it| !self.waits_for_subagent(it));
        let in_hand = in_hand || self.is_awaited_by_program();
        if !self.live.process.stopping || in_hand || self.live.process.stopped {
            return None;
        }
        self.live.process.stopped = true;
        Some(Effect::Stopped)
    }
}

const NO_CONVERSATION: crate::id::ConversationId = crate::id::ConversationId::from_bytes([0; 16]);
