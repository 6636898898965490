//! One namespace for all agents that are not archived.

use crate::error::{Error, Result};
use agentd_core::event::Body;
use agentd_core::state::AgentState;

/// An error if another agent has the name. An alias of another agent is not an obstacle: that agent loses the alias.
/// True if names change.
///
/// `is_taken` tells whether another agent that is not archived has a name, not only as an alias.
pub fn check_names<'a>(
    state: &AgentState,
    events: impl Iterator<Item = &'a Body>,
    mut is_taken: impl FnMut(&str) -> Result<bool>,
) -> Result<bool> {
    let mut changes = false;
    let (mut name, mut archived) = (&state.name, state.archived);
    for body in events {
        match body {
            Body::AgentCreated(body) => name = &body.name,
            Body::AgentRenamed(body) => name = &body.name,
            Body::AgentRestored(_) => archived = false,
            Body::AgentArchived(_) => archived = true,
            _ => continue,
        }
        changes = true;
        if !archived && is_taken(name)? {
            return Err(Error::NameTaken { name: name.clone() });
        }
    }
    Ok(changes)
}
