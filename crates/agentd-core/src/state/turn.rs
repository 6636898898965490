//! The running turn, as the journal records it.

use super::AgentState;
use crate::event::{
    Asks, Event, FailureClass, FileChange, Grant, LimitKind, PatchedFile, PauseReason, Purpose,
    RequestEnded, RequestOutcome, RequestSent, ToolEnded, ToolStarted, TurnEnded, TurnStarted,
    TurnStatus,
};
use crate::id::{BootId, CallId, ConversationId, OpId, PromptId, TaskId, TryId, TurnId};
use crate::message::CallOutcome;
use crate::time::Timestamp;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub resumes: Option<TurnId>,
    /// It was started for this compaction.
    #[serde(default)]
    pub compacts: Option<OpId>,
    /// It has produced a summary.
    #[serde(default)]
    pub compacted: bool,
    /// It has produced a summary, and the model has not been asked for an answer since. Hooks may not have been
    /// notified of it.
    #[serde(default)]
    pub compaction_is_new: bool,
    pub started_at: Timestamp,
    /// How long it has waited for the user in total. This time counts towards no time limit.
    #[serde(default)]
    pub waited_ms: u64,
    /// It has been waiting for the user since then, and nothing else is in progress.
    #[serde(default)]
    pub waiting_since: Option<Timestamp>,
    pub prompts: Vec<PromptId>,
    /// How many answers the model has given. `max_iterations` limits it.
    pub iterations: u32,
    pub in_flight: Option<InFlight>,
    /// It has started a process, or another call that may change files like one: what they changed is found after its
    /// end.
    #[serde(default)]
    pub ran_commands: bool,
    /// Calls that were started and have no result yet.
    pub calls: BTreeMap<CallId, StartedCall>,
    /// Failed attempts since the last success.
    pub failures: u32,
    pub last_failure: Option<FailureClass>,
    /// Crashes since the last progress (a finished message or result).
    pub crashes: u32,
    pub paused: Option<PauseReason>,
    /// How many times in a row hooks have kept it from ending.
    pub stops_refused: u32,
    pub spent: Spent,
}

/// A request that was sent and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    pub request: TryId,
    pub purpose: Purpose,
    pub grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCall {
    pub tool: String,
    pub task: Option<TaskId>,
    pub boot: Option<BootId>,
    pub change: Option<FileChange>,
    #[serde(default)]
    pub patched: Vec<PatchedFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedTurn {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub status: TurnStatus,
    pub limit: Option<LimitKind>,
    pub failure: Option<FailureClass>,
    pub ended_at: Timestamp,
    pub spent: Spent,
}

impl EndedTurn {
    /// Whether it leaves the agent as failed. A prompt that a hook refused does not.
    pub(super) fn is_trouble(&self) -> bool {
        matches!(self.status, TurnStatus::Failed | TurnStatus::Lost)
            && self.failure != Some(FailureClass::Blocked)
    }
}

impl Turn {
    /// Whether it has nothing to answer: the user removed its prompt while it was beginning.
    pub const fn is_empty(&self) -> bool {
        self.prompts.is_empty() && self.resumes.is_none() && self.compacts.is_none()
    }

    /// Whether its prompt may have reached the model, or the program of an outer agent.
    pub const fn was_delivered(&self) -> bool {
        self.in_flight.is_some() || self.spent.requests > 0
    }

    /// How long it has been working: since its recorded start, minus the time it has waited for the user.
    pub fn busy_ms(&self, now: Timestamp) -> u64 {
        let waiting = self.waiting_since.map_or(0, |since| now.since(since));
        let waited = self.waited_ms.saturating_add(waiting);
        now.since(self.started_at).saturating_sub(waited)
    }

    pub(super) const fn continued(&mut self) {
        self.paused = None;
        // The user told it to continue, so it has all its attempts again.
        self.crashes = 0;
        self.failures = 0;
        self.last_failure = None;
    }

    pub(super) fn request_sent(&mut self, body: &RequestSent) {
        self.compaction_is_new &= body.purpose != Purpose::Answer;
        self.in_flight = Some(InFlight {
            request: body.request,
            purpose: body.purpose,
            grant: body.grant,
        });
    }

    pub(super) fn request_ended(&mut self, body: &RequestEnded) {
        self.spent.add(body.usage, body.cost);
        let Some(in_flight) = self
            .in_flight
            .take_if(|known| known.request == body.request)
        else {
            return;
        };
        match body.outcome {
            RequestOutcome::Completed => {
                self.failures = 0;
                self.crashes = 0;
                self.last_failure = None;
                if in_flight.purpose == Purpose::Answer {
                    self.iterations = self.iterations.saturating_add(1);
                }
            }
            RequestOutcome::Failed { class, .. } => {
                self.failures = self.failures.saturating_add(1);
                self.last_failure = Some(class);
            }
            RequestOutcome::Interrupted | RequestOutcome::Lost => {}
        }
    }

    pub(super) fn tool_started(&mut self, body: &ToolStarted) {
        self.ran_commands |= body.is_scanned();
        self.calls.insert(
            body.call.clone(),
            StartedCall {
                tool: body.tool.clone(),
                task: body.task,
                boot: body.boot,
                change: body.change.clone(),
                patched: body.patched.clone(),
            },
        );
    }

    pub(super) fn tool_ended(&mut self, body: &ToolEnded) {
        self.calls.remove(&body.call);
        // A result that recovery wrote after a crash is not progress.
        if !matches!(body.outcome, CallOutcome::NotStarted | CallOutcome::Unknown) {
            self.crashes = 0;
        }
    }
}

impl AgentState {
    /// The tasks whose end the journal does not have: of calls without a result, and in the background.
    pub fn open_tasks(&self) -> BTreeSet<TaskId> {
        let calls = self.turn.iter().flat_map(|turn| turn.calls.values());
        let background = self.tasks.running().map(|(id, _)| *id);
        calls
            .filter_map(|call| call.task)
            .chain(background)
            .collect()
    }

    pub(super) fn start_turn(&mut self, event: &Event, body: &TurnStarted) -> bool {
        let Some(id) = event.turn else { return false };
        let fresh = self.turn.is_none();
        self.turn = Some(Turn {
            id,
            conversation: event.conversation,
            resumes: body.resumes,
            compacts: body.compacts,
            compacted: false,
            compaction_is_new: false,
            started_at: event.at,
            waited_ms: 0,
            waiting_since: None,
            prompts: Vec::new(),
            iterations: 0,
            in_flight: None,
            ran_commands: false,
            calls: BTreeMap::new(),
            failures: 0,
            last_failure: None,
            crashes: 0,
            paused: None,
            stops_refused: 0,
            spent: Spent::default(),
        });
        // A turn that answers no prompt is not counted.
        let is_known = match body.compacts {
            Some(_) => self.tree.get(event.conversation).is_some(),
            None => self.tree.turn_started(event.conversation),
        };
        is_known && fresh
    }

    pub(super) fn end_turn(&mut self, event: &Event, body: &TurnEnded) -> bool {
        let Some(turn) = self.turn.take_if(|turn| event.turn == Some(turn.id)) else {
            return false;
        };
        self.approvals.end_turn(turn.id);
        self.scan_after(&turn, body, event.at);
        self.parent_link_answered(&turn.prompts, body.status);
        let busy_ms = turn.busy_ms(event.at);
        self.spending.work(event.at, busy_ms);
        self.tree.turn_ended(turn.conversation, busy_ms);
        if let Some(op) = turn.compacts {
            self.compactions.turn_ended(op, body.status, turn.compacted);
            return true;
        }
        if body.withdrawn {
            // The turn before it may still be continued.
            return true;
        }
        self.last_turn = Some(EndedTurn {
            id: turn.id,
            conversation: turn.conversation,
            status: body.status,
            limit: body.limit,
            failure: body.failure,
            ended_at: event.at,
            spent: turn.spent,
        });
        true
    }

    /// The newest ended turn of the current conversation. After a reset there is none, because the end of the
    /// previous conversation says nothing about this one.
    pub fn last_turn_here(&self) -> Option<&EndedTurn> {
        let current = self.tree.current();
        let last = self.last_turn.as_ref();
        last.filter(|turn| Some(turn.conversation) == current)
    }

    /// Whether the ended request was a complete answer.
    pub(super) fn is_answer(&self, body: &RequestEnded) -> bool {
        let in_flight = self.turn.as_ref().and_then(|turn| turn.in_flight);
        let is_it = in_flight
            .is_some_and(|known| known.request == body.request && known.purpose == Purpose::Answer);
        is_it && body.outcome == RequestOutcome::Completed
    }

    /// Whether the turn can only continue after the user has acted. Until then no attempt is in progress, and a crash
    /// is not a failed attempt.
    pub fn waits_for_user(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| {
            let mut questions = self.approvals.waiting();
            turn.paused.is_some() || questions.any(|(_, asked)| asked.turn == Some(turn.id))
        })
    }

    /// Stops the turn's clock while the turn only waits for the user, and starts it again afterwards.
    pub(super) fn keep_turn_clock(&mut self, at: Timestamp) {
        let waits = self.waits_for_user();
        let Some(turn) = &mut self.turn else { return };
        // A call that asks the user something does nothing else meanwhile.
        let asks = |call: &CallId| {
            let mut questions = self.approvals.waiting();
            questions.any(|(_, asked)| {
                asked.asks == Asks::Input && asked.turn == Some(turn.id) && asked.call == *call
            })
        };
        let idle = turn.in_flight.is_none() && turn.calls.keys().all(asks);
        match (waits && idle, turn.waiting_since) {
            (true, None) => turn.waiting_since = Some(at),
            (false, Some(since)) => {
                turn.waited_ms = turn.waited_ms.saturating_add(at.since(since));
                turn.waiting_since = None;
            }
            _ => {}
        }
    }

    /// Changes the running turn, if the event belongs to it.
    pub(super) fn in_turn(&mut self, event: &Event, change: impl FnOnce(&mut Turn)) -> bool {
        match &mut self.turn {
            Some(turn) if event.turn == Some(turn.id) => {
                change(turn);
                true
            }
            _ => false,
        }
    }
}
