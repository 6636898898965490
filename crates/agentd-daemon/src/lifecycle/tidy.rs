//! Removes what a finished one-shot agent does not need on disk. What it has written stays until it is purged. If it runs again,
//! its process creates the rest again.

use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::spawn::blocking;
use agentd_core::event::Mode;
use agentd_store::AgentQuery;
use std::io;
use std::sync::Arc;

const PAGE: usize = 500;

/// Tidies the agent, once after each end of its process. Called after every change of it.
pub fn check(guard: &mut AgentGuard<'_>) {
    if guard.tidied || !is_over(guard) {
        return;
    }
    guard.tidied = true;
    let handle = guard.handle;
    handle.work_on("tidy", tidy(handle.clone()), |guard| guard.tidied = false);
}

/// Whether nothing of it runs, and nothing is about to. A hook that begins holds the lock until its start is recorded.
fn is_over(guard: &AgentGuard<'_>) -> bool {
    let state = &guard.state;
    let is_idle = guard.process.is_none() && !guard.wanted && !state.needs_process();
    let is_busy = guard.resetting || guard.restoring || guard.awaiting_hooks > 0;
    let runs = state.tasks.running().len() + state.commands.running().len();
    state.mode == Mode::Oneshot
        && state.last_turn.is_some()
        && state.turn.is_none()
        && is_idle
        && !is_busy
        && runs == 0
        && state.hooks.open().next().is_none()
        && !state.is_held()
}

async fn tidy(handle: AgentHandle) {
    if let Err(error) = remove(&handle).await {
        tracing::warn!(agent = %handle.id, %error, "finished agent not tidied");
    }
}

async fn remove(handle: &AgentHandle) -> io::Result<()> {
    let (daemon, agent) = (&handle.daemon, handle.id);
    let mut guard = handle.lock().await;
    if !is_over(&guard) {
        guard.tidied = false;
        return Ok(());
    }
    daemon.tool_sockets.close(agent);
    let layout = daemon.layout.clone();
    let is_aside = blocking(move || layout.set_aside(agent)).await?;
    if !is_aside {
        // A process of an earlier daemon runs: its end leads here again.
        guard.tidied = false;
        return Ok(());
    }
    drop(guard);
    let layout = daemon.layout.clone();
    blocking(move || layout.remove_set_aside(agent)).await?;
    let mut guard = handle.lock().await;
    if !is_over(&guard) {
        guard.tidied = false;
        return Ok(());
    }
    let layout = daemon.layout.clone();
    blocking(move || layout.forget_process(agent)).await
}

/// Tidies the agents that a killed daemon, or an earlier version, has left as they were.
pub async fn all(daemon: Arc<Daemon>) {
    let mut after = None;
    loop {
        let query = AgentQuery {
            mode: Some(Mode::Oneshot),
            limit: PAGE,
            after,
            ..AgentQuery::default()
        };
        let page = match daemon.store.agents(query).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "finished agents not listed");
                return;
            }
        };
        for row in page.agents {
            let layout = daemon.layout.clone();
            if !blocking(move || layout.has_runtime_lock(row.id)).await {
                continue;
            }
            if let Ok(handle) = daemon.handle(row.id).await {
                check(&mut handle.lock().await);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return,
        }
    }
}
