//! Schedules without their texts.

use agentd_client::api::{AgentRef, DueTime, LastFiring, Schedule, When};
use agentd_core::event::ScheduleRule;
use agentd_core::schedule::next_times;
use agentd_core::state::{self, AgentState};

/// How many due times are shown.
const SHOWN: usize = 5;

/// All schedules of an agent.
pub fn all(state: &AgentState) -> Vec<Schedule> {
    let all = state.schedules.iter();
    all.map(|known| one(state, known)).collect()
}

pub fn one(state: &AgentState, known: &state::Schedule) -> Schedule {
    let when = match known.rule.clone() {
        ScheduleRule::Cron { expression, zone } => When::Cron { expression, zone },
        ScheduleRule::At { at, zone } => When::At { at, zone },
        ScheduleRule::Every { every_ms, .. } => When::Every { every_ms },
    };
    let waits = state.schedule_waits(known);
    Schedule {
        agent: AgentRef {
            id: state.id,
            name: Some(state.name.clone()),
        },
        id: known.id,
        name: known.name.clone(),
        when,
        action: known.action,
        prompt: None,
        missed: known.missed,
        overlap: known.overlap,
        added_at: known.added_at,
        paused: known.paused,
        waits: waits.filter(|_| known.paused.is_none() && known.next.is_some()),
        next: next_times(known, SHOWN).into_iter().map(DueTime).collect(),
        last: known.last.map(|last| LastFiring {
            due: last.due,
            at: last.at,
            outcome: last.outcome,
        }),
    }
}
