//! The daemon's log says when turns begin and end.

use crate::daemon::AgentGuard;
use agentd_core::event::Kind;
use agentd_core::id::TurnId;
use agentd_core::link::Append;

/// The turns that begin or end with these events.
pub fn turns_in(append: &Append) -> Vec<(Kind, TurnId)> {
    let events = append.events.iter();
    let turns = events.filter_map(|event| Some((event.body.kind(), event.turn?)));
    let is_edge = |kind: Kind| matches!(kind, Kind::TurnStarted | Kind::TurnEnded);
    turns.filter(|(kind, _)| is_edge(*kind)).collect()
}

pub fn log_turns(guard: &AgentGuard<'_>, turns: &[(Kind, TurnId)]) {
    let (agent, name) = (guard.handle.id, guard.state.name.as_str());
    for (kind, turn) in turns {
        match kind {
            Kind::TurnStarted => tracing::info!(%agent, name, %turn, "turn began"),
            _ => tracing::info!(%agent, name, %turn, "turn ended"),
        }
    }
}
