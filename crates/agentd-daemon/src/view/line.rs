//! An agent as a line of the list.

use super::{approvals, known_words, last_words, no_tools, process, subagents, summary, usage};
use crate::daemon::{AgentHandle, Daemon};
use crate::title;
use agentd_client::api::{AgentLine, Process, ProcessState};
use agentd_core::state::Phase;
use agentd_store::AgentRow;
use std::sync::Arc;

/// A line of the list; `handle` is given if the agent is in use.
pub async fn of(daemon: &Arc<Daemon>, row: AgentRow, handle: Option<&AgentHandle>) -> AgentLine {
    let held_up = match (row.phase, handle) {
        (Phase::Running, Some(handle)) => subagents::held_up(handle).await,
        _ => None,
    };
    let approvals = match row.phase {
        Phase::AwaitingApproval => match daemon.handle(row.id).await {
            Ok(handle) => approvals::waiting(&handle.lock().await, None).await,
            Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    };
    let parent = match row.parent {
        Some(parent) => Some(daemon.reference(parent).await),
        None => None,
    };
    let process = match handle {
        Some(handle) => process(&handle.lock().await),
        None => Process {
            state: match row.phase {
                Phase::Stopped | Phase::Failed => ProcessState::Down,
                _ => ProcessState::Asleep,
            },
            pid: None,
        },
    };
    AgentLine {
        id: row.id,
        name: row.name,
        mode: row.mode,
        // A turn that waits for a subagent waits for the user if the subagent does.
        phase: held_up.map_or(row.phase, |held_up| held_up.phase),
        process,
        generation: row.generation,
        conversations: row.conversations,
        usage: usage(&row.spent),
        created_at: row.created_at,
        updated_at: row.updated_at,
        archived: row.archived,
        parent,
        approvals,
        title: None,
        model: None,
        provider: None,
        cwd: None,
        summary: None,
        next_due: None,
        no_tools: None,
    }
}

/// Adds what the journal says: settings, title and last words. An agent that cannot be read is listed without them.
pub async fn with_words(daemon: &Arc<Daemon>, mut line: AgentLine) -> AgentLine {
    let Ok(handle) = daemon.handle(line.id).await else {
        return line;
    };
    let (state, known) = {
        let guard = handle.lock().await;
        (guard.state.clone(), known_words(&guard))
    };
    line.title.clone_from(&state.spec.title);
    if let (None, Some(current)) = (&line.title, state.tree.current()) {
        line.title = title::of(daemon, &state, current).await;
    }
    line.model.clone_from(&state.spec.model);
    line.provider.clone_from(&state.spec.provider);
    line.cwd.clone_from(&state.spec.cwd);
    let active = state.schedules.iter();
    let active = active.filter(|schedule| schedule.paused.is_none());
    line.next_due = active.filter_map(|schedule| schedule.next).min();
    line.no_tools = no_tools(daemon, line.id).await;
    let words = last_words(&handle, known).await;
    line.summary = words.ok().and_then(|words| summary(&words));
    line
}
