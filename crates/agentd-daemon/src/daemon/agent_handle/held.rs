//! What a held agent refuses: it was imported, and the user has not released it.

use crate::error::{Error, Kind, Result};
use agentd_core::event::NewEvent;
use agentd_core::state::AgentState;

/// Refuses events that a held agent does not accept. Every append of the daemon passes this check.
pub fn check(state: &AgentState, events: &[NewEvent]) -> Result<()> {
    match state.accepts(events.iter().map(|event| event.body.kind())) {
        true => Ok(()),
        false => Err(error(state)),
    }
}

pub fn error(state: &AgentState) -> Error {
    let name = &state.name;
    Error::new(Kind::Waiting, format!("`{name}` was imported and is held"))
        .because("it does not run before you have seen what it contains")
        .next(format!("agentd start {name}"))
}
