//! The hooks that run in the course of a turn, and what their verdicts change. The driver invokes the hooks of a call
//! when it prepares and runs the call.

use super::plan::Move;
use super::{Effect, Hooks, Machine, Moment};
use crate::event::{
    FailureClass, Note, Notice, NoticeCause, Position, PromptBlocked, PromptsTaken, TurnEnded,
    TurnStarted, TurnStatus,
};
use crate::hook::{HookInput, HookInvocation, Verdict};
use crate::id::{PromptId, Seq, TurnId};
use crate::state::{AgentState, Queued};
use crate::window::{Entry, Window};

/// How many times in a row hooks may keep a turn from ending.
const MAX_STOPS_REFUSED: u32 = 8;

/// A summary that hooks have not been notified of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shortened {
    pub at: Seq,
    pub text: String,
    /// PostCompact hooks have run; SessionStart hooks have not.
    pub is_told: bool,
}

impl Shortened {
    /// A summary of which the previous process may not have notified the hooks. If it has, the invocation returns the
    /// recorded verdict.
    pub fn untold(agent: &AgentState, window: &Window) -> Option<Self> {
        let turn = agent.turn.as_ref().filter(|turn| turn.compaction_is_new)?;
        let first = window.items().first()?;
        let Entry::Summary(text) = &first.entry else {
            return None;
        };
        (first.turn == Some(turn.id)).then(|| Self {
            at: first.placed.seq,
            text: text.clone(),
            is_told: false,
        })
    }
}

impl Machine {
    /// The verdict of the hooks. If there is none yet, returns the effect that invokes them, or waits for it.
    fn hear(&mut self, invocation: HookInvocation) -> Result<Verdict, Move> {
        if self.policy.hooks == Hooks::None {
            return Ok(Verdict::default());
        }
        if let Some((_, verdict)) = self.live.turn.heard.take_if(|(id, _)| *id == invocation.id) {
            return Ok(verdict);
        }
        if self.live.turn.asked == Some(invocation.id) {
            return Err(Move::Wait);
        }
        self.live.turn.asked = Some(invocation.id);
        let invocation = Box::new(invocation);
        Err(Move::Do(vec![Effect::InvokeHooks { invocation }]))
    }

    /// The prompts that this conversation may take. Prompts that are meant for the next one are not included.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Queued> {
        let reset = self.agent.resets.under_way().map(|reset| reset.began);
        let waiting = self.agent.inbox.waiting();
        waiting.filter(move |queued| reset.is_none_or(|began| queued.seq < began))
    }

    /// A hook refused the turn's prompt or compaction.
    pub(super) fn refuse(&mut self, reason: String) -> Move {
        self.live.outbox.backlog.push(note(reason));
        self.end_turn(TurnEnded {
            failure: Some(FailureClass::Blocked),
            ..TurnEnded::with(TurnStatus::Failed)
        })
    }

    /// A prompt that joins the running turn.
    pub(super) fn steer(&mut self, prompt: PromptId) -> Move {
        let Some(turn) = self.agent.turn.as_ref().map(|turn| turn.id) else {
            return Move::Wait;
        };
        match self.judge(Some(turn), prompt) {
            Err(wait) => wait,
            Ok(verdict) => {
                let refused = self.submit(prompt, verdict);
                self.live.outbox.backlog.extend(refused.map(note));
                Move::Append
            }
        }
    }

    /// Whether the user interrupted the prompt while its hooks were running.
    pub(super) fn is_unwanted(&self, prompt: PromptId) -> bool {
        let asked = HookInvocation::prompt_id(prompt, self.edits(prompt));
        self.live.turn.unwanted == Some(asked)
    }

    /// Ends the prompt's turn before it has begun. The model never sees the prompt, because no hook has checked it.
    pub(super) fn drop_prompt(&mut self, moment: &mut Moment<'_>, prompt: PromptId) -> Move {
        self.live.turn.unwanted = None;
        self.live.turn.asked = None;
        self.live.turn.heard = None;
        self.live.outbox.next_turn = Some(TurnId::new((moment.new_id)()));
        self.live.outbox.starting = true;
        let (resumes, compacts) = (None, None);
        let started = TurnStarted { resumes, compacts };
        self.live.outbox.backlog.push(started.into());
        self.live
            .outbox
            .backlog
            .push(PromptBlocked { prompt }.into());
        self.end_turn(TurnEnded::with(TurnStatus::Interrupted))
    }

    fn edits(&self, prompt: PromptId) -> u32 {
        let queued = self.agent.inbox.get(prompt);
        queued.map_or(0, |queued| queued.edits)
    }

    /// The verdict of the hooks about a prompt, before it is taken.
    pub(super) fn judge(
        &mut self,
        turn: Option<TurnId>,
        prompt: PromptId,
    ) -> Result<Verdict, Move> {
        let blocks = match self.window.pending(prompt) {
            Some(blocks) => blocks,
            // Its text arrives with the next event.
            None if self.policy.hooks == Hooks::Asked => return Err(Move::Wait),
            None => &[],
        };
        let hook_input = HookInput::user_prompt_submit(blocks);
        self.hear(HookInvocation {
            turn,
            ..HookInvocation::of_prompt(prompt, self.edits(prompt), hook_input)
        })
    }

    /// Takes a prompt, unless a hook refuses it. Returns the reason of the refusal.
    pub(super) fn submit(&mut self, prompt: PromptId, verdict: Verdict) -> Option<String> {
        if verdict.is_no() || verdict.stop.is_some() {
            self.live
                .outbox
                .backlog
                .push(PromptBlocked { prompt }.into());
            let reason = verdict.reason.or(verdict.stop).unwrap_or_default();
            return Some(format!("a hook refused the prompt: {reason}"));
        }
        self.live.turn.hookless = verdict.hookless;
        self.tell(verdict.context);
        let prompts = vec![prompt];
        self.live
            .outbox
            .backlog
            .push(PromptsTaken { prompts }.into());
        None
    }

    /// The model has answered: the turn ends, unless a hook asks it to continue.
    pub(super) fn wrap_up(&mut self) -> Move {
        let Some(turn) = &self.agent.turn else {
            return Move::Wait;
        };
        let (id, n, refused) = (turn.id, turn.iterations, turn.stops_refused);
        let (is_active, text) = (refused > 0, self.window.last_text());
        let hook_input = match self.agent.is_working_for_parent() {
            true => HookInput::subagent_stop(&self.agent.name, "completed", is_active, &text),
            false => HookInput::stop(is_active, &text),
        };
        match self.hear(HookInvocation::of_turn(id, u64::from(n), hook_input)) {
            Err(wait) => wait,
            // `refused` already includes this refusal.
            Ok(verdict)
                if verdict.is_no() && verdict.stop.is_none() && refused <= MAX_STOPS_REFUSED =>
            {
                let reason = verdict.reason.unwrap_or_default();
                let more = verdict.context.map(|context| format!("\n{context}"));
                let more = more.unwrap_or_default();
                self.tell(Some(format!("A hook asks you to continue: {reason}{more}")));
                Move::Append
            }
            Ok(_) => self.complete(),
        }
    }

    /// Why hooks refuse the compaction; `None` if they allow it.
    pub(super) fn may_compact(&mut self, cut: Option<Position>) -> Result<Option<String>, Move> {
        let Some(turn) = self.agent.turn.as_ref().map(|turn| turn.id) else {
            return Ok(None);
        };
        let at = cut.map_or(0, |cut| cut.seq.0);
        let instruction = self.window.instruction().filter(|_| self.compacts());
        let hook_input = HookInput::pre_compact(self.trigger(), instruction);
        let verdict = self.hear(HookInvocation::of_turn(turn, at, hook_input))?;
        if !verdict.is_no() && verdict.stop.is_none() {
            return Ok(None);
        }
        let reason = verdict.reason.or(verdict.stop).unwrap_or_default();
        Ok(Some(format!("a hook refused to compact: {reason}")))
    }

    /// What caused the compaction.
    fn trigger(&self) -> &'static str {
        match self.compacts() {
            true => "manual",
            false => "auto",
        }
    }

    /// After a compaction: notifies the hooks of it, and then of the start of the compacted conversation.
    pub(super) fn after_compaction(&mut self) -> Option<Move> {
        let turn = self.agent.turn.as_ref()?.id;
        let shortened = self.live.turn.shortened.clone()?;
        let at = shortened.at.0;
        if !shortened.is_told {
            let hook_input = HookInput::post_compact(self.trigger(), &shortened.text);
            if let Err(wait) = self.hear(HookInvocation::of_turn(turn, at, hook_input)) {
                return Some(wait);
            }
            let is_told = true;
            self.live.turn.shortened = Some(Shortened {
                is_told,
                ..shortened
            });
        }
        let shortened = self.live.turn.shortened.clone()?;
        let model = self.policy.context.model.clone();
        let hook_input = HookInput::session_start("compact", Some(&model), None);
        match self.hear(HookInvocation::of_turn(turn, at, hook_input)) {
            Err(wait) => Some(wait),
            Ok(verdict) => {
                self.live.turn.shortened = None;
                // If the previous process died right after it added this context, it is not added again.
                let context = verdict
                    .context
                    .filter(|text| !self.was_told(&shortened, text));
                let is_said = context.is_some();
                self.tell(context);
                is_said.then_some(Move::Append)
            }
        }
    }

    /// Whether the model has already been told this since the summary.
    fn was_told(&self, shortened: &Shortened, text: &str) -> bool {
        let mut items = self.window.items().iter();
        items.any(|item| {
            let is_it = matches!(&item.entry, Entry::Notice(told) if told == text);
            is_it && item.placed.seq > shortened.at
        })
    }

    /// Adds the hooks' context for the model.
    fn tell(&mut self, context: Option<String>) {
        let cause = NoticeCause::Hook;
        let notice = context.map(|text| Notice { cause, text }.into());
        self.live.outbox.backlog.extend(notice);
    }
}

fn note(text: String) -> crate::event::Body {
    let about = None;
    Note { about, text }.into()
}
