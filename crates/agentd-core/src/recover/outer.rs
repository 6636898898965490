//! Recovery of an outer agent: nothing is sent again. The turn ends, and a notice names what is unknown.

use super::{Facts, Told, end_request, list, result, session_latest};
use crate::event::{After, Body, Notice, NoticeCause, TurnEnded, TurnStatus};
use crate::id::CallId;
use crate::message::{Block, CallOutcome};
use crate::state::{AgentState, Turn};
use crate::window::Window;

/// Whether the turn was delivered to a program, which ended with the previous process. A turn that had only begun is
/// delivered now.
pub(super) fn is_cut(agent: &AgentState, turn: &Turn) -> bool {
    agent.spec.is_outer() && turn.was_delivered()
}

/// Everything that ends the turn.
pub(super) fn end(agent: &AgentState, turn: &Turn, window: &Window, facts: &Facts) -> Vec<Body> {
    let (mut bodies, mut told) = (Vec::new(), Told::default());
    if let Some(in_flight) = turn.in_flight {
        end_request(&in_flight, &facts.draft, None, &mut bodies, &mut told);
        if let Some(Body::RequestEnded(ended)) = bodies.first_mut() {
            // Only the program knows what it used.
            (ended.usage, ended.estimated, ended.cost) = Default::default();
        }
    }
    let mut unknown: Vec<CallId> = Vec::new();
    for call in window.open_calls() {
        let asked = agent.approvals.of_call(turn.id, &call.id);
        // The program waits for the answer, and is given it after the start is recorded.
        let waits = asked.is_some() && !turn.calls.contains_key(&call.id);
        let (outcome, text) = match waits {
            true => {
                let text =
                    "Not run: the agent's program ended before it was told that the call may run.";
                (CallOutcome::NotStarted, text)
            }
            false => {
                unknown.push(call.id.clone());
                let text = "Outcome unknown: the agent's program ended while this call ran.";
                (CallOutcome::Unknown, text)
            }
        };
        bodies.extend(result(&call.id, outcome, vec![Block::text(text)]));
    }
    let mut text = left();
    if !unknown.is_empty() {
        let unknown = list(&unknown);
        text.push_str(&format!(
            " Whether these calls had an effect is unknown; check before you repeat one: {unknown}."
        ));
    }
    let cause = match facts.after {
        After::Crash => NoticeCause::Crashed,
        After::Start | After::Restart => NoticeCause::Restarted,
    };
    bodies.push(Notice { cause, text }.into());
    let ended = TurnEnded {
        compacts: turn.compacts.is_some(),
        ..TurnEnded::with(TurnStatus::Interrupted)
    };
    bodies.push(ended.into());
    bodies.push(session_latest());
    bodies
}

/// What the conversation is told about a turn that its program could not finish.
pub(crate) fn left() -> String {
    "The agent's program ended in the middle of this turn. The prompt was not sent again."
        .to_owned()
}
