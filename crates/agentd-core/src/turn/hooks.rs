//! Where hooks are asked in the course of a turn, and what their answer changes. A call's own hooks are asked
//! by whoever prepares and runs it.

use super::plan::Move;
use super::{Effect, Hooks, Machine, Moment};
use crate::event::{
    FailureClass, Note, Notice, NoticeCause, Position, PromptBlocked, PromptsTaken, TurnEnded,
    TurnStarted, TurnStatus,
};
use crate::hook::{HookEvent, HookInput, HookInvocation, Verdict};
use crate::id::{InvocationId, PromptId, Seq, TurnId};
use crate::state::{AgentState, Queued};
use crate::window::{Entry, Window};

/// So often hooks may keep a turn from ending, one time after the other.
const MAX_STOPS_REFUSED: u32 = 8;

/// A summary that hooks have not heard of yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shortened {
    pub at: Seq,
    pub text: String,
    /// That it is over was told; the conversation has not begun anew yet.
    pub is_told: bool,
}

impl Shortened {
    /// The one of which a process before this one may not have told: hooks that it has told have the
    /// recorded answer.
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
    /// What the hooks say. Where they have not said it yet: the question, or the wait for its answer.
    fn hear(&mut self, invocation: HookInvocation) -> Result<Verdict, Move> {
        if self.policy.hooks == Hooks::None {
            return Ok(Verdict::default());
        }
        if let Some((_, verdict)) = self.live.heard.take_if(|(id, _)| *id == invocation.id) {
            return Ok(verdict);
        }
        if self.live.asked == Some(invocation.id) {
            return Err(Move::Wait);
        }
        self.live.asked = Some(invocation.id);
        let invocation = Box::new(invocation);
        Err(Move::Do(vec![Effect::InvokeHooks { invocation }]))
    }

    /// The prompts that this conversation may take: not those that wait for the next one.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Queued> {
        let reset = self.agent.resets.under_way().map(|reset| reset.began);
        let waiting = self.agent.inbox.waiting();
        waiting.filter(move |queued| reset.is_none_or(|began| queued.seq < began))
    }

    /// A hook does not want what the turn is for.
    pub(super) fn refuse(&mut self, reason: String) -> Move {
        self.live.backlog.push(note(reason));
        self.end_turn(TurnEnded {
            failure: Some(FailureClass::Blocked),
            ..TurnEnded::with(TurnStatus::Failed)
        })
    }

    /// One that joins the turn.
    pub(super) fn steer(&mut self, prompt: PromptId) -> Move {
        let Some(turn) = self.agent.turn.as_ref().map(|turn| turn.id) else {
            return Move::Wait;
        };
        match self.judge(Some(turn), prompt) {
            Err(wait) => wait,
            Ok(verdict) => {
                let refused = self.submit(prompt, verdict);
                self.live.backlog.extend(refused.map(note));
                Move::Append
            }
        }
    }

    /// Whether the user has interrupted it while hooks were asked.
    pub(super) fn is_unwanted(&self, prompt: PromptId) -> bool {
        let asked = InvocationId::of(HookEvent::UserPromptSubmit, &[prompt.as_bytes()]);
        self.live.unwanted == Some(asked)
    }

    /// Its turn is over before it has begun. The model never sees it: nobody has judged it.
    pub(super) fn drop_prompt(&mut self, moment: &mut Moment<'_>, prompt: PromptId) -> Move {
        self.live.unwanted = None;
        self.live.asked = None;
        self.live.heard = None;
        self.live.next_turn = Some(TurnId::new((moment.new_id)()));
        self.live.starting = true;
        let (resumes, compacts) = (None, None);
        let started = TurnStarted { resumes, compacts };
        self.live.backlog.push(started.into());
        self.live.backlog.push(PromptBlocked { prompt }.into());
        self.end_turn(TurnEnded::with(TurnStatus::Interrupted))
    }

    /// What hooks say of a prompt, before anybody takes it.
    pub(super) fn judge(
        &mut self,
        turn: Option<TurnId>,
        prompt: PromptId,
    ) -> Result<Verdict, Move> {
        let blocks = match self.window.pending(prompt) {
            Some(blocks) => blocks,
            // Its words come with the next event.
            None if self.policy.hooks == Hooks::Asked => return Err(Move::Wait),
            None => &[],
        };
        let hook_input = HookInput::user_prompt_submit(blocks);
        self.hear(HookInvocation {
            turn,
            ..HookInvocation::of_prompt(prompt, hook_input)
        })
    }

    /// Takes a prompt, unless a hook refuses it: then its reason is returned.
    pub(super) fn submit(&mut self, prompt: PromptId, verdict: Verdict) -> Option<String> {
        if verdict.is_no() || verdict.stop.is_some() {
            self.live.backlog.push(PromptBlocked { prompt }.into());
            let reason = verdict.reason.or(verdict.stop).unwrap_or_default();
            return Some(format!("a hook refused the prompt: {reason}"));
        }
        self.tell(verdict.context);
        let prompts = vec![prompt];
        self.live.backlog.push(PromptsTaken { prompts }.into());
        None
    }

    /// The model has answered: the turn is over, unless a hook wants it to go on.
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
            // What it said now is counted already.
            Ok(verdict)
                if verdict.is_no() && verdict.stop.is_none() && refused <= MAX_STOPS_REFUSED =>
            {
                let reason = verdict.reason.unwrap_or_default();
                let more = verdict.context.map(|context| format!("\n{context}"));
                let more = more.unwrap_or_default();
                self.tell(Some(format!("A hook wants you to go on: {reason}{more}")));
                Move::Append
            }
            Ok(_) => self.complete(),
        }
    }

    /// Why hooks do not let the conversation be shortened; none where they do.
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

    /// Who wants it shorter.
    fn trigger(&self) -> &'static str {
        match self.compacts() {
            true => "manual",
            false => "auto",
        }
    }

    /// It was shortened: hooks hear of that, and that it goes on anew.
    pub(super) fn after_compaction(&mut self) -> Option<Move> {
        let turn = self.agent.turn.as_ref()?.id;
        let shortened = self.live.shortened.clone()?;
        let at = shortened.at.0;
        if !shortened.is_told {
            let hook_input = HookInput::post_compact(self.trigger(), &shortened.text);
            if let Err(wait) = self.hear(HookInvocation::of_turn(turn, at, hook_input)) {
                return Some(wait);
            }
            let is_told = true;
            self.live.shortened = Some(Shortened {
                is_told,
                ..shortened
            });
        }
        let shortened = self.live.shortened.clone()?;
        let model = self.policy.context.model.clone();
        let hook_input = HookInput::session_start("compact", Some(&model), None);
        match self.hear(HookInvocation::of_turn(turn, at, hook_input)) {
            Err(wait) => Some(wait),
            Ok(verdict) => {
                self.live.shortened = None;
                // A process that died right after it had said it does not say it again.
                let context = verdict
                    .context
                    .filter(|text| !self.was_told(&shortened, text));
                let is_said = context.is_some();
                self.tell(context);
                is_said.then_some(Move::Append)
            }
        }
    }

    /// Whether the model is told this already, since the summary.
    fn was_told(&self, shortened: &Shortened, text: &str) -> bool {
        let mut items = self.window.items().iter();
        items.any(|item| {
            let is_it = matches!(&item.entry, Entry::Notice(told) if told == text);
            is_it && item.placed.seq > shortened.at
        })
    }

    /// What hooks have for the model.
    fn tell(&mut self, context: Option<String>) {
        let cause = NoticeCause::Hook;
        let notice = context.map(|text| Notice { cause, text }.into());
        self.live.backlog.extend(notice);
    }
}

fn note(text: String) -> crate::event::Body {
    let about = None;
    Note { about, text }.into()
}
