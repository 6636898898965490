//! Starts the agents that have work, when the daemon starts. Runtimes that are still alive are adopted as they connect.

use crate::daemon::Daemon;
use crate::error::Result;
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use agentd_store::{AgentQuery, AgentSort};
use std::sync::Arc;

const PAGE: usize = 500;

pub async fn revive(daemon: &Arc<Daemon>) -> Result<()> {
    let mut phases = vec![Phase::Running, Phase::Resetting];
    if !daemon.envs.secret_values().is_empty() {
        // An agent may wait for a key that was stored just before an earlier daemon ended.
        phases.push(Phase::Waiting);
    }
    for phase in phases {
        for agent in all_that_are(daemon, phase).await? {
            reconcile(daemon, agent).await;
        }
    }
    // Agents with running tasks: only a process records how a task ends.
    let with_tasks = daemon.store.with_tasks().await;
    for agent in with_tasks? {
        if let Ok(handle) = daemon.handle(agent).await {
            let mut guard = handle.lock().await;
            guard.wanted |= guard.process.is_none() && !guard.state.archived;
            guard.reconcile();
        }
    }
    Ok(())
}

async fn reconcile(daemon: &Arc<Daemon>, agent: AgentId) {
    match daemon.handle(agent).await {
        Ok(handle) => handle.lock().await.reconcile(),
        Err(error) => tracing::error!(%agent, %error, "agent not resumed"),
    }
}

pub async fn all_that_are(daemon: &Daemon, phase: Phase) -> Result<Vec<AgentId>> {
    let mut agents = Vec::new();
    let mut after = None;
    loop {
        let query = AgentQuery {
            phase: Some(phase),
            sort: AgentSort::Recent,
            limit: PAGE,
            after,
            ..AgentQuery::default()
        };
        let page = daemon.store.agents(query).await?;
        agents.extend(page.agents.into_iter().map(|agent| agent.id));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(agents),
        }
    }
}
