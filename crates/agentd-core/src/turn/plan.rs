//! What the state calls for next.

use super::{Effect, Hooks, Live, Machine, Moment};
use crate::event::{
    Body, NewEvent, PromptMode, PromptsTaken, TurnContinued, TurnStarted, TurnStatus,
};
use crate::id::{CallId, TurnId};
use crate::subagents;

/// What one look at the state came to.
pub(super) enum Move {
    /// Something must be durable first.
    Append,
    Do(Vec<Effect>),
    /// Wait for the next input.
    Wait,
}

impl Machine {
    pub(super) fn plan(&mut self, moment: &mut Moment<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.live.reloaded {
            return self.reload();
        }
        if self.live.stopped {
            return effects;
        }
        self.ask(moment.new_id);
        self.keep_time(moment.at);
        loop {
            // Cancelling does not wait for the disk.
            effects.extend(self.cancel_what_runs());
            if self.live.appending {
                return effects;
            }
            if !self.live.backlog.is_empty() {
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
        // Said once, and good for this look at the state alone: a turn that runs needs no leave.
        let continue_asked = std::mem::take(&mut self.live.continue_asked);
        let Some(turn) = &self.agent.turn else {
            let resumes = if continue_asked {
                self.limited_turn()
            } else {
                None
            };
            return self.between_turns(moment, resumes);
        };
        if self.live.interrupting {
            return self.interrupt();
        }
        if turn.paused.is_some() && continue_asked {
            self.live.backlog.push(TurnContinued {}.into());
            return Move::Append;
        }
        if turn.paused.is_some() {
            return Move::Wait;
        }
        if turn.in_flight.is_some() {
            if self.live.stopping && self.unsend() {
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
            return if self.live.stopping {
                Move::Wait
            } else {
                self.ask_model(moment)
            };
        }
        match last_failure {
            // What there is of the last try is no answer.
            Some(class) => self.fail(class),
            // Nor is one that an interrupt cut off, of which a crash left the end to us.
            None if self.window.is_cut_off() => self.interrupt(),
            None => self.wrap_up(),
        }
    }

    fn between_turns(&mut self, moment: &mut Moment<'_>, resumes: Option<TurnId>) -> Move {
        if self.live.stopping || self.agent.is_held_back() {
            return Move::Wait;
        }
        if self.tell_of_tasks() {
            return Move::Append;
        }
        if let (None, Some(op)) = (resumes, self.agent.compactions.asked()) {
            self.live.next_turn = Some(TurnId::new((moment.new_id)()));
            self.live.starting = true;
            let compacts = Some(op);
            let resumes = None;
            let started = TurnStarted { resumes, compacts };
            self.live.backlog.push(started.into());
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
        // Hooks are asked about it before the turn begins.
        let taken = match next.filter(|_| resumes.is_none()) {
            Some(prompt) if self.is_unwanted(prompt) => return self.drop_prompt(moment, prompt),
            Some(prompt) => match self.judge(None, prompt) {
                Ok(verdict) => Some((prompt, verdict)),
                Err(wait) => return wait,
            },
            None => None,
        };
        self.live.next_turn = Some(TurnId::new((moment.new_id)()));
        self.live.starting = true;
        let compacts = None;
        let started = TurnStarted { resumes, compacts };
        self.live.backlog.push(started.into());
        if let Some((prompt, verdict)) = taken
            && let Some(reason) = self.submit(prompt, verdict)
        {
            return self.refuse(reason);
        }
        Move::Append
    }

    /// Says which tasks have ended, where nothing comes between what belongs together.
    fn tell_of_tasks(&mut self) -> bool {
        let ended = std::mem::take(&mut self.live.ended_tasks);
        let any = !ended.is_empty();
        self.live.backlog.extend(ended);
        any
    }

    /// The turn that `continue` takes up again.
    fn limited_turn(&self) -> Option<TurnId> {
        let last = self.agent.last_turn.as_ref()?;
        let here = self.agent.tree.current() == Some(last.conversation);
        (here && last.status == TurnStatus::Limited).then_some(last.id)
    }

    /// Prompts that join the turn at this boundary.
    fn take_steering(&mut self) -> Option<Move> {
        if self.live.stopping {
            return None;
        }
        let joining = self.waiting();
        let joining = joining.filter(|queued| queued.mode == PromptMode::Steer);
        let prompts: Vec<_> = joining.map(|queued| queued.prompt).collect();
        let first = *prompts.first()?;
        if self.policy.hooks == Hooks::Asked {
            return Some(self.steer(first));
        }
        self.live.backlog.push(PromptsTaken { prompts }.into());
        Some(Move::Append)
    }

    fn append(&mut self, moment: &Moment<'_>) -> Effect {
        let Live {
            backlog,
            ends,
            next_turn,
            appending,
            ..
        } = &mut self.live;
        let under_way = self.agent.turn.as_ref().map(|turn| turn.id);
        let turn = next_turn.take().or(under_way);
        // There is a conversation wherever there is something to append: the fold has seen it begin.
        let conversation = self.agent.tree.current().unwrap_or(NO_CONVERSATION);
        let event = |body: Body| NewEvent {
            at: moment.at,
            conversation,
            turn,
            body,
        };
        *appending = true;
        Effect::Append {
            events: backlog.drain(..).map(event).collect(),
            ends: ends.take(),
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

    /// Whether a call waits for a subagent: another process waits for it as well.
    fn waits_for_subagent(&self, call: &CallId) -> bool {
        let turn = self.agent.turn.as_ref();
        let started = turn.and_then(|turn| turn.calls.get(call));
        started.is_some_and(|started| started.tool == subagents::TOOL)
    }

    fn stopped(&mut self) -> Option<Effect> {
        let in_hand = self.live.sent.is_some()
            || self
                .live
                .calls
                .keys()
                .any(|it| !self.waits_for_subagent(it));
        if !self.live.stopping || in_hand || self.live.stopped {
            return None;
        }
        self.live.stopped = true;
        Some(Effect::Stopped)
    }
}

const NO_CONVERSATION: crate::id::ConversationId = crate::id::ConversationId::from_bytes([0; 16]);
