//! An agent's parent and subagents, and the questions of theirs that wait.

use super::last_note;
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use agentd_client::api::{AgentRef, Approval, Child};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::{AgentState, Phase};
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

pub async fn parent(daemon: &Daemon, handle: &AgentHandle) -> Option<AgentRef> {
    let id = {
        let guard = handle.lock().await;
        guard.state.parent_link.as_ref()?.parent
    };
    Some(daemon.reference(id).await)
}

/// All that work for an agent, and for those, and so on.
pub async fn below(daemon: &Daemon, handle: &AgentHandle) -> Vec<Arc<AgentHandle>> {
    let mut open: Vec<AgentId> = working(handle).await;
    let mut found: Vec<Arc<AgentHandle>> = Vec::new();
    while let Some(id) = open.pop() {
        if found.iter().any(|handle| handle.id == id) {
            continue;
        }
        if let Ok(child) = daemon.handle(id).await {
            open.extend(working(&child).await);
            found.push(child);
        }
    }
    found
}

async fn working(handle: &AgentHandle) -> Vec<AgentId> {
    let guard = handle.lock().await;
    let running = guard.state.children.running();
    running.map(|(agent, _)| *agent).collect()
}

/// The questions of those that work for an agent. The user answers them, as its own.
pub async fn approvals(daemon: &Daemon, handle: &AgentHandle) -> Vec<Approval> {
    let mut approvals = Vec::new();
    for child in below(daemon, handle).await {
        let guard = child.lock().await;
        let of = AgentRef {
            id: child.id,
            name: Some(guard.state.name.clone()),
        };
        approvals.extend(super::approvals::waiting(daemon, &guard, Some(of)).await);
    }
    approvals
}

/// An agent that another one's turn waits for, or that those wait for, and that waits for the user itself.
pub struct HeldUp {
    pub handle: Arc<AgentHandle>,
    pub name: String,
    pub head: Seq,
    /// For leave, or to be told to go on.
    pub phase: Phase,
}

/// The first of them.
pub async fn held_up(daemon: &Daemon, handle: &AgentHandle) -> Option<HeldUp> {
    let mut open = waited_for(handle).await;
    while let Some(id) = open.pop() {
        let Ok(child) = daemon.handle(id).await else {
            continue;
        };
        let (name, head, phase) = {
            let guard = child.lock().await;
            let state = &guard.state;
            (state.name.clone(), state.head, state.phase())
        };
        if matches!(phase, Phase::AwaitingApproval | Phase::Waiting) {
            let handle = child;
            return Some(HeldUp {
                handle,
                name,
                head,
                phase,
            });
        }
        open.extend(waited_for(&child).await);
    }
    None
}

/// Why, for whoever waits for the one above.
pub async fn reason(daemon: &Daemon, held: &HeldUp) -> String {
    let name = &held.name;
    if held.phase == Phase::AwaitingApproval {
        return format!("a call of its subagent {name} waits for approval");
    }
    match last_note(daemon, held.handle.id, held.head).await {
        Some(note) => format!("its subagent {name} waits: {note}"),
        None => format!("its subagent {name} waits"),
    }
}

async fn waited_for(handle: &AgentHandle) -> Vec<AgentId> {
    let guard = handle.lock().await;
    let running = guard.state.children.running();
    let waited = running.filter(|(_, child)| !child.background);
    waited.map(|(agent, _)| *agent).collect()
}

/// Whoever waits for an agent that waits for the user, or for those that wait for it, looks again.
pub async fn stir(daemon: Arc<Daemon>, handle: Arc<AgentHandle>) {
    let mut at = handle;
    loop {
        let parent = at
            .lock()
            .await
            .state
            .parent_link
            .as_ref()
            .map(|it| it.parent);
        let Some(parent) = parent else { return };
        let Ok(handle) = daemon.handle(parent).await else {
            return;
        };
        handle.changed();
        at = handle;
    }
}
