//! What to append after a crash, once, under a new incarnation.
//!
//! [`crate::repair`] makes a request from any history and writes nothing. Recovery records the outcome of everything
//! that was in progress, so that repair finds nothing to do afterwards. The driver determines what happened to
//! processes and passes it in as [`Facts`].

mod facts;
mod outer;

pub use facts::{CallFact, Facts};
pub(crate) use outer::left as child_left;

use crate::budget::charge_without_usage;
use crate::draft::Reply;
use crate::event::{
    After, Body, CheckpointSet, IncarnationBegan, MessageAdded, MessageStatus, NewEvent, Notice,
    NoticeCause, PauseReason, Purpose, RequestEnded, RequestOutcome, ResultAdded, ToolEnded,
    TurnEnded, TurnPaused, TurnStatus,
};
use crate::finished::Finished;
use crate::id::{CallId, TryId};
use crate::message::{Block, CallOutcome, CutBlock};
use crate::spec::OnCrash;
use crate::state::{AgentState, InFlight, Turn};
use crate::time::Timestamp;
use crate::usage::Price;
use crate::window::Window;

/// How many attempts without progress a turn gets before it is given up.
pub const MAX_TRIES: u32 = 3;

/// The result of a call whose outcome is unknown.
pub const UNKNOWN: &str = "Outcome unknown: the agent was restarted while this call ran.";

/// The label that is set at the end of every turn.
pub const SESSION_LATEST: &str = "session-latest";

#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// To append together.
    pub events: Vec<NewEvent>,
    /// The draft that those events end.
    pub ends: Option<TryId>,
    /// Calls whose processes are still running.
    pub running: Vec<CallId>,
}

/// Decides what to append. Called again after that append, it returns only the new incarnation.
pub fn recover(agent: &AgentState, window: &Window, facts: &Facts, at: Timestamp) -> Recovery {
    let mut bodies: Vec<Body> = vec![
        IncarnationBegan {
            incarnation: facts.incarnation,
            after: facts.after,
            full_access: facts.full_access,
        }
        .into(),
    ];
    let mut recovery = Recovery {
        events: Vec::new(),
        ends: None,
        running: Vec::new(),
    };
    if let Some(turn) = agent
        .turn
        .as_ref()
        .filter(|turn| outer::is_cut(agent, turn))
    {
        recovery.ends = turn.in_flight.map(|in_flight| in_flight.request);
        bodies.extend(outer::end(agent, turn, window, facts));
    } else if let Some(turn) = &agent.turn {
        let mut told = Told::default();
        if let Some(in_flight) = turn.in_flight {
            recovery.ends = Some(in_flight.request);
            end_request(
                &in_flight,
                &facts.draft,
                facts.price,
                &mut bodies,
                &mut told,
            );
        }
        let gives_up = gives_up(agent, turn, window, facts);
        recovery.running =
            close_calls(agent, turn, window, facts, gives_up, &mut bodies, &mut told);
        if let Some(text) = told.notice(gives_up) {
            let cause = match facts.after {
                After::Crash => NoticeCause::Crashed,
                After::Start | After::Restart => NoticeCause::Restarted,
            };
            bodies.push(Notice { cause, text }.into());
        }
        if gives_up == GivesUp::Yes {
            let ended = TurnEnded {
                compacts: turn.compacts.is_some(),
                ..TurnEnded::with(TurnStatus::Lost)
            };
            bodies.push(ended.into());
            bodies.push(session_latest());
        } else if facts.after == After::Crash
            && turn.paused.is_none()
            && agent.spec.on_crash == OnCrash::Wait
        {
            let reason = PauseReason::Crash;
            bodies.push(TurnPaused { reason }.into());
        }
    }
    if agent.turn.is_none() {
        // Calls without a turn can only come from the conversation that this one branched off.
        bodies.extend(close_branch(window));
    }
    let turn = agent.turn.as_ref();
    if let Some(conversation) = turn.map_or(agent.tree.current(), |turn| Some(turn.conversation)) {
        recovery.events = bodies
            .into_iter()
            .map(|body| NewEvent {
                at,
                conversation,
                turn: turn.map(|turn| turn.id),
                body,
            })
            .collect();
    }
    recovery
}

pub(crate) fn session_latest() -> Body {
    CheckpointSet {
        label: SESSION_LATEST.to_owned(),
        at: None,
    }
    .into()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GivesUp {
    Yes,
    No,
}

/// Whether this crash exceeds the limit. A call that is still running, has ended well in the meantime or waits for
/// the user is not a failed attempt.
fn gives_up(agent: &AgentState, turn: &Turn, window: &Window, facts: &Facts) -> GivesUp {
    let alive = window.open_calls().any(|call| {
        let fact = facts.calls.get(&call.id);
        let started = turn.calls.contains_key(&call.id);
        let going_on = matches!(fact, Some(CallFact::Running | CallFact::Ended(_)));
        let asked = agent.approvals.of_call(turn.id, &call.id);
        (started && going_on) || asked.is_some_and(|approval| approval.decision.is_none())
    });
    let one_too_many = facts.after == After::Crash && turn.crashes + 1 >= MAX_TRIES;
    match one_too_many && !alive && turn.paused.is_none() {
        true => GivesUp::Yes,
        false => GivesUp::No,
    }
}

/// What the model is told about an interruption, in one notice.
#[derive(Default)]
struct Told {
    reply_cut: bool,
    call_cut: bool,
    not_started: Vec<CallId>,
    unknown: Vec<CallId>,
}

impl Told {
    fn notice(&self, gives_up: GivesUp) -> Option<String> {
        let mut parts = Vec::new();
        if self.reply_cut {
            parts.push("Your last reply was cut off; the part that arrived is above.".to_owned());
        }
        if self.call_cut {
            parts.push("A tool call you were writing was cut off and did not run.".to_owned());
        }
        if !self.not_started.is_empty() {
            parts.push(format!(
                "These calls did not run: {}.",
                list(&self.not_started)
            ));
        }
        if !self.unknown.is_empty() {
            parts.push(format!(
                "Whether these calls had an effect is unknown; check before you repeat one: {}.",
                list(&self.unknown)
            ));
        }
        if parts.is_empty() {
            return None;
        }
        parts.insert(
            0,
            "You were restarted in the middle of this turn.".to_owned(),
        );
        let then = match gives_up {
            GivesUp::No => "Continue with the task.",
            GivesUp::Yes => "The turn was given up after several crashes; answer the next message.",
        };
        parts.push(then.to_owned());
        Some(parts.join(" "))
    }
}

fn list(calls: &[CallId]) -> String {
    let ids: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
    ids.join(", ")
}

/// What a process appends if it does not wait for the reply to its request. Recovery after its exit would append the
/// same.
pub(crate) fn request_left(in_flight: &InFlight, draft: &Reply, price: Option<Price>) -> Vec<Body> {
    let (mut bodies, mut told) = (Vec::new(), Told::default());
    end_request(in_flight, draft, price, &mut bodies, &mut told);
    if let Some(text) = told.notice(GivesUp::No) {
        let cause = NoticeCause::Restarted;
        bodies.push(Notice { cause, text }.into());
    }
    bodies
}

fn end_request(
    in_flight: &InFlight,
    draft: &Reply,
    price: Option<Price>,
    bodies: &mut Vec<Body>,
    told: &mut Told,
) {
    let usage = charge_without_usage(&in_flight.grant, draft.written_bytes());
    bodies.push(
        RequestEnded {
            request: in_flight.request,
            outcome: RequestOutcome::Lost,
            usage,
            estimated: true,
            cost: price.map(|price| price.of(&usage)),
            provider_request: None,
        }
        .into(),
    );
    let blocks = draft.clone().cut();
    if blocks.is_empty() {
        return;
    }
    let status = match in_flight.purpose {
        Purpose::Answer => MessageStatus::Interrupted,
        Purpose::Compact => MessageStatus::Superseded,
    };
    if in_flight.purpose == Purpose::Answer {
        told.reply_cut = true;
        told.call_cut = blocks.iter().any(|block| {
            matches!(
                block,
                Block::Cut {
                    what: CutBlock::ToolCall,
                    ..
                }
            )
        });
    }
    bodies.push(
        MessageAdded {
            request: Some(in_flight.request),
            status,
            stop: None,
            blocks,
        }
        .into(),
    );
}

/// Gives each open call a result, and returns the calls that are still running.
fn close_calls(
    agent: &AgentState,
    turn: &Turn,
    window: &Window,
    facts: &Facts,
    gives_up: GivesUp,
    bodies: &mut Vec<Body>,
    told: &mut Told,
) -> Vec<CallId> {
    let mut running = Vec::new();
    for call in window.open_calls() {
        let fact = match facts.calls.get(&call.id) {
            Some(fact) if turn.calls.contains_key(&call.id) => fact.clone(),
            None if turn.calls.contains_key(&call.id) => CallFact::Unknown,
            // It waits for the user's approval, or has it. Either survives a crash.
            _ if gives_up == GivesUp::No
                && agent.approvals.of_call(turn.id, &call.id).is_some() =>
            {
                continue;
            }
            // A process that ended as planned has left nothing half done: the new one runs the call.
            _ if facts.after == After::Restart && turn.paused.is_none() => continue,
            _ => CallFact::NotStarted,
        };
        let (outcome, blocks) = match fact {
            CallFact::Running => {
                running.push(call.id.clone());
                continue;
            }
            CallFact::Ended(finished) => {
                bodies.extend(ended(&call.id, finished));
                continue;
            }
            CallFact::NotStarted => {
                told.not_started.push(call.id.clone());
                let text = "Not run: the agent was restarted before this call began.";
                (CallOutcome::NotStarted, vec![Block::text(text)])
            }
            CallFact::Unknown => {
                told.unknown.push(call.id.clone());
                (CallOutcome::Unknown, vec![Block::text(UNKNOWN)])
            }
        };
        bodies.extend(result(&call.id, outcome, blocks));
    }
    running
}

/// Everything that ends a call which has run.
pub(crate) fn ended(call: &CallId, finished: Finished) -> Vec<Body> {
    let mut bodies: Vec<Body> = finished.background.map(Body::from).into_iter().collect();
    bodies.extend(finished.also);
    let ended = ToolEnded {
        seen: finished.seen,
        ..ToolEnded::new(call.clone(), finished.outcome)
    };
    bodies.extend(result_of(ended, finished.blocks));
    bodies
}

/// The two events that end a call.
pub(crate) fn result(call: &CallId, outcome: CallOutcome, blocks: Vec<Block>) -> [Body; 2] {
    result_of(ToolEnded::new(call.clone(), outcome), blocks)
}

/// A result is never empty.
fn result_of(ended: ToolEnded, mut blocks: Vec<Block>) -> [Body; 2] {
    blocks.retain(|block| !block.is_blank());
    if blocks.is_empty() {
        blocks.push(Block::text("(no output)"));
    }
    let result = ResultAdded {
        call: ended.call.clone(),
        outcome: ended.outcome,
        blocks,
    };
    [ended.into(), result.into()]
}

/// What opens a branch that begins in the middle of a turn. It gets neither the calls nor the approvals of that turn,
/// and a notice says so.
pub fn close_branch(window: &Window) -> Vec<Body> {
    let (mut bodies, calls) = results_elsewhere(window);
    let text = calls
        .map(|calls| format!("This conversation branched off in the middle of a turn. {calls}"));
    bodies.extend(text.map(branched));
    bodies
}

/// What opens a fork of agent `parent`: the same, and always a notice about what does not belong to the fork.
pub(crate) fn open_fork(window: &Window, parent: &str) -> Vec<Body> {
    let (mut bodies, calls) = results_elsewhere(window);
    let mut text = format!(
        "You are a fork of the agent `{parent}`, which continues independently in the same directory. Its \
         background tasks, pending approvals and queued prompts are not yours."
    );
    if let Some(calls) = calls {
        text.push_str(&format!(
            " You branched off in the middle of a turn. {calls}"
        ));
    }
    bodies.push(branched(text));
    bodies
}

fn branched(text: String) -> Body {
    let cause = NoticeCause::Branched;
    Notice { cause, text }.into()
}

/// A result for each call that is open at the branch point, and the text about them for the notice.
fn results_elsewhere(window: &Window) -> (Vec<Body>, Option<String>) {
    let mut bodies = Vec::new();
    let open: Vec<CallId> = window.open_calls().map(|call| call.id.clone()).collect();
    for call in &open {
        let text = "Not part of this branch: the call continued in the conversation that made it.";
        let blocks = vec![Block::text(text)];
        // There is no turn here that could contain the call, so only the result is needed.
        let [_, result] = result(call, CallOutcome::Interrupted, blocks);
        bodies.push(result);
    }
    let said = || format!("These calls belong to the other branch: {}.", list(&open));
    let said = (!open.is_empty()).then(said);
    (bodies, said)
}

#[cfg(test)]
mod tests;
