//! An agent's parent and subagents, and the questions of theirs that wait.

use crate::daemon::Daemon;
use crate::desk::Desk;
use agentd_client::api::{Approval, Child, Parent};
use agentd_core::id::AgentId;
use agentd_core::state::AgentState;
use std::sync::Arc;

pub fn children(state: &AgentState) -> Vec<Child> {
    let mut children: Vec<Child> = state
        .children
        .iter()
        .map(|(id, child)| Child {
            id: *id,
            name: child.name.clone(),
            kind: child.kind.clone(),
            background: child.background,
            started_at: child.started_at,
            outcome: child.ended.map(|ended| ended.outcome),
        })
        .collect();
    children.sort_by_key(|child| child.started_at);
    children
}

pub async fn parent(daemon: &Daemon, desk: &Desk) -> Option<Parent> {
    let id = {
        let guard = desk.lock().await;
        guard.state.errand.as_ref()?.parent
    };
    let name = match daemon.desk(id).await {
        Ok(parent) => Some(parent.lock().await.state.name.clone()),
        Err(_) => None,
    };
    Some(Parent { id, name })
}

/// All that work for an agent, and for those, and so on.
pub async fn below(daemon: &Daemon, desk: &Desk) -> Vec<Arc<Desk>> {
    let mut open: Vec<AgentId> = working(desk).await;
    let mut found: Vec<Arc<Desk>> = Vec::new();
    while let Some(id) = open.pop() {
        if found.iter().any(|desk| desk.id == id) {
            continue;
        }
        if let Ok(child) = daemon.desk(id).await {
            open.extend(working(&child).await);
            found.push(child);
        }
    }
    found
}

async fn working(desk: &Desk) -> Vec<AgentId> {
    let guard = desk.lock().await;
    let running = guard.state.children.running();
    running.map(|(agent, _)| *agent).collect()
}

/// The questions of those that work for an agent. The user answers them, as its own.
pub async fn approvals(daemon: &Daemon, desk: &Desk) -> Vec<Approval> {
    let mut approvals = Vec::new();
    for child in below(daemon, desk).await {
        let guard = child.lock().await;
        let name = &guard.state.name;
        let waiting = guard.state.approvals.waiting();
        approvals.extend(waiting.map(|(id, approval)| Approval {
            id: *id,
            call: approval.call.to_string(),
            asked_at: approval.asked_at,
            agent: Some(name.clone()),
        }));
    }
    approvals
}

/// The first of those that an agent's turn waits for, and those that they wait for, which has a question.
pub async fn asking(daemon: &Daemon, desk: &Desk) -> Option<String> {
    let mut open = waited_for(desk).await;
    while let Some(id) = open.pop() {
        let Ok(child) = daemon.desk(id).await else {
            continue;
        };
        let guard = child.lock().await;
        if guard.state.approvals.waiting().next().is_some() {
            return Some(guard.state.name.clone());
        }
        drop(guard);
        open.extend(waited_for(&child).await);
    }
    None
}

async fn waited_for(desk: &Desk) -> Vec<AgentId> {
    let guard = desk.lock().await;
    let running = guard.state.children.running();
    let waited = running.filter(|(_, child)| !child.background);
    waited.map(|(agent, _)| *agent).collect()
}

/// Whoever waits for an agent that has a question, or for those that wait for it, looks again.
pub async fn stir(daemon: Arc<Daemon>, desk: Arc<Desk>) {
    let mut at = desk;
    loop {
        let parent = at.lock().await.state.errand.as_ref().map(|it| it.parent);
        let Some(parent) = parent else { return };
        let Ok(desk) = daemon.desk(parent).await else {
            return;
        };
        desk.changed();
        at = desk;
    }
}
