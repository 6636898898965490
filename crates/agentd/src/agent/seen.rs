//! What the driver reports: events, pieces of a reply, and the agent's state at the end of a turn.

use agentd_core::draft::Delta;
use agentd_core::event::Event;
use agentd_core::id::TryId;
use agentd_core::session::Session;
use agentd_core::state::AgentState;
use agentd_daemon::clock;
use agentd_runtime::driver::{Observed, Observer};
use tokio::sync::mpsc;

/// A report; its content is durable.
pub enum Seen {
    Event(Box<Event>),
    Delta(TryId, Delta),
    Checkpoint(Box<Checkpoint>),
}

/// The agent after the end of a turn, or of the run.
pub struct Checkpoint {
    pub state: AgentState,
    /// The new content of `session-latest.json`.
    pub saved: Option<Session>,
    /// The newest answer.
    pub text: String,
}

pub fn observer(seen: mpsc::UnboundedSender<Seen>) -> Observer {
    Box::new(move |observed| {
        let _receiver_is_gone = seen.send(match observed {
            Observed::Event(event) => Seen::Event(Box::new(event.clone())),
            Observed::Delta(request, delta) => Seen::Delta(request, delta.clone()),
            Observed::Checkpoint(state, window) => Seen::Checkpoint(Box::new(Checkpoint {
                state: state.clone(),
                saved: Session::of(state, window, clock::now()),
                text: window.last_text(),
            })),
        });
    })
}
