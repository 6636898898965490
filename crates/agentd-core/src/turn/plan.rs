//! What the state calls for next.

use super::{Effect, Live, Machine, Moment};
use crate::event::{Body, NewEvent, PromptsTaken, TurnStarted};
use crate::id::TurnId;

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
        self.ask(moment.new_id);
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
        let Some(turn) = &self.agent.turn else {
            return self.between_turns(moment);
        };
        if self.live.interrupting {
            return self.interrupt();
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
        if self.live.stopping {
            return Move::Wait;
        }
        if self.take_steering() {
            return Move::Append;
        }
        if self.window.awaits_answer() {
            return self.ask_model(moment);
        }
        self.complete()
    }

    fn between_turns(&mut self, moment: &mut Moment<'_>) -> Move {
        if self.live.stopping {
            return Move::Wait;
        }
        let resumes = self.take_resume();
        let next = self
            .agent
            .inbox
            .waiting()
            .next()
            .map(|queued| queued.prompt);
        if resumes.is_none() && next.is_none() {
            return Move::Wait;
        }
        self.live.next_turn = Some(TurnId::new((moment.new_id)()));
        self.live.starting = true;
        self.live.backlog.push(TurnStarted { resumes }.into());
        if let (None, Some(prompt)) = (resumes, next) {
            let prompts = vec![prompt];
            self.live.backlog.push(PromptsTaken { prompts }.into());
        }
        Move::Append
    }

    /// The `limited` turn that `continue` takes up again.
    fn take_resume(&mut self) -> Option<TurnId> {
        if !std::mem::take(&mut self.live.resume) {
            return None;
        }
        let limited = crate::event::TurnStatus::Limited;
        let last = self.agent.last_turn.as_ref()?;
        (last.status == limited).then_some(last.id)
    }

    /// Prompts that join the turn at this boundary.
    fn take_steering(&mut self) -> bool {
        let steer = crate::event::PromptMode::Steer;
        let waiting = self.agent.inbox.waiting();
        let prompts: Vec<_> = waiting
            .filter(|queued| queued.mode == steer)
            .map(|queued| queued.prompt)
            .collect();
        if prompts.is_empty() {
            return false;
        }
        self.live.backlog.push(PromptsTaken { prompts }.into());
        true
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

    fn stopped(&mut self) -> Option<Effect> {
        let in_hand = self.live.sent.is_some() || !self.live.calls.is_empty();
        if !self.live.stopping || in_hand || self.live.stopped {
            return None;
        }
        self.live.stopped = true;
        Some(Effect::Stopped)
    }
}

const NO_CONVERSATION: crate::id::ConversationId = crate::id::ConversationId::from_bytes([0; 16]);
