//! Hook invocations: what is running, and the outcomes of the latest ones.

use super::AgentState;
use crate::event::{Event, HookEnded, HookOutcome, HookStarted};
use crate::hook::{Decision, HookEvent};
use crate::id::{ConversationId, HookId, InvocationId, Seq, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many finished invocations are remembered. If an older one is requested again, its hooks run again.
const KEPT: usize = 128;

/// One invocation of hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationState {
    pub id: InvocationId,
    pub event: HookEvent,
    pub conversation: ConversationId,
    pub turn: Option<TurnId>,
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub started: HookStarted,
    /// None while it runs.
    pub ended: Option<Ended>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub outcome: HookOutcome,
    pub decision: Decision,
    /// The event with its output.
    pub words: Option<Seq>,
}

impl InvocationState {
    fn is_over(&self) -> bool {
        self.runs.iter().all(|run| run.ended.is_some())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    known: VecDeque<InvocationState>,
}

impl Hooks {
    pub fn get(&self, invocation: InvocationId) -> Option<&InvocationState> {
        self.known
            .iter()
            .rev()
            .find(|invoked| invoked.id == invocation)
    }

    /// Invocations with a run whose end is not recorded.
    pub fn open(&self) -> impl Iterator<Item = &InvocationState> {
        self.known.iter().filter(|invoked| !invoked.is_over())
    }

    /// The output of the hooks for this conversation's beginnings and prompts, newest first.
    pub fn words_of(&self, conversation: ConversationId) -> impl Iterator<Item = Seq> {
        let is_told =
            |event| matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit);
        let known = self.known.iter().rev();
        let known = known.filter(move |it| it.conversation == conversation && is_told(it.event));
        let runs = known.flat_map(|invoked| invoked.runs.iter().rev());
        runs.filter_map(|run| run.ended?.words)
    }

    /// The run with this id, if it has not ended.
    pub fn running(&self, hook: HookId) -> Option<(&InvocationState, &Run)> {
        self.open().find_map(|invoked| {
            let run = invoked.runs.iter().find(|run| run.started.hook == hook)?;
            run.ended.is_none().then_some((invoked, run))
        })
    }

    /// Drops runs that started in another installation. Their end will not be recorded here.
    pub(super) fn abandon(&mut self) {
        self.known.retain(InvocationState::is_over);
    }

    pub(super) fn start(&mut self, event: &Event, body: &HookStarted) {
        let run = Run {
            started: body.clone(),
            ended: None,
        };
        match self
            .known
            .iter_mut()
            .find(|invoked| invoked.id == body.invocation)
        {
            Some(invoked) => invoked.runs.push(run),
            None => self.known.push_back(InvocationState {
                id: body.invocation,
                event: body.event,
                conversation: event.conversation,
                turn: event.turn,
                runs: vec![run],
            }),
        }
        while self.known.len() > KEPT {
            let Some(at) = self.known.iter().position(InvocationState::is_over) else {
                break;
            };
            self.known.remove(at);
        }
    }

    /// `None` if the run is unknown or has already ended. `Kept::Turn` if it keeps the turn from ending and no other
    /// run of the same invocation has done so.
    fn end(&mut self, event: &Event, body: &HookEnded) -> Option<Kept> {
        let mut firings = self.known.iter_mut();
        let invoked = firings.find(|invoked| invoked.id == body.invocation)?;
        let is_first = !invoked.runs.iter().any(|run| {
            let ended = run.ended.as_ref();
            ended.is_some_and(|ended| ended.decision == Decision::Deny)
        });
        let mut runs = invoked.runs.iter_mut();
        let run = runs.find(|run| run.started.hook == body.hook && run.ended.is_none())?;
        run.ended = Some(Ended {
            outcome: body.outcome,
            decision: body.decision,
            words: body.has_words.then(|| Seq(event.seq.0.saturating_sub(1))),
        });
        let says_no = body.decision == Decision::Deny && !run.started.is_async;
        let keeps_turn = matches!(invoked.event, HookEvent::Stop | HookEvent::SubagentStop);
        match says_no && is_first && keeps_turn {
            true => Some(Kept::Turn(invoked.turn)),
            false => Some(Kept::Nothing),
        }
    }
}

/// What the result of a run keeps from ending.
enum Kept {
    Nothing,
    Turn(Option<TurnId>),
}

impl AgentState {
    pub(super) fn end_hook(&mut self, event: &Event, body: &HookEnded) -> bool {
        let Some(kept) = self.hooks.end(event, body) else {
            return false;
        };
        if let (Kept::Turn(of), Some(turn)) = (kept, &mut self.turn)
            && of == Some(turn.id)
        {
            turn.stops_refused = turn.stops_refused.saturating_add(1);
        }
        true
    }
}
