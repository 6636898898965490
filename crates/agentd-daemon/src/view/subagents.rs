//! An agent's parent and subagents, and the approvals that its subagents wait for.

use super::last_note;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use agentd_client::api::{AgentRef, Approval, Child};
use agentd_core::event::PauseReason;
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::{AgentState, Phase};

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

pub async fn parent(handle: &AgentHandle) -> Option<AgentRef> {
    let id = {
        let guard = handle.lock().await;
        guard.state.parent_link.as_ref()?.parent
    };
    Some(handle.daemon.reference(id).await)
}

/// All running descendants of an agent: its subagents, their subagents, and so on.
pub async fn below(handle: &AgentHandle) -> Vec<AgentHandle> {
    let mut open: Vec<AgentId> = working(handle).await;
    let mut found: Vec<AgentHandle> = Vec::new();
    while let Some(id) = open.pop() {
        if found.iter().any(|handle| handle.id == id) {
            continue;
        }
        if let Ok(child) = handle.daemon.handle(id).await {
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

/// The waiting approvals of an agent's descendants. The user answers them like the agent's own.
pub async fn approvals(below: &[AgentHandle]) -> Vec<Approval> {
    let mut approvals = Vec::new();
    for child in below {
        let guard = child.lock().await;
        let of = Some(reference(&guard));
        approvals.extend(super::approvals::waiting(&guard, of).await);
    }
    approvals
}

/// The descendants whose turns wait for a key.
pub async fn waiting_for_keys(below: &[AgentHandle]) -> Vec<AgentRef> {
    let mut waiting = Vec::new();
    for child in below {
        waiting.extend(waiting_for_key(&child.lock().await));
    }
    waiting
}

/// The agent, if its turn waits for a key.
pub fn waiting_for_key(guard: &AgentGuard<'_>) -> Option<AgentRef> {
    let paused = guard.state.turn.as_ref().and_then(|turn| turn.paused);
    (paused == Some(PauseReason::MissingKey)).then(|| reference(guard))
}

fn reference(guard: &AgentGuard<'_>) -> AgentRef {
    AgentRef {
        id: guard.handle.id,
        name: Some(guard.state.name.clone()),
    }
}

/// A descendant that blocks a turn because it waits for the user.
pub struct HeldUp {
    pub handle: AgentHandle,
    pub name: String,
    pub head: Seq,
    /// Waiting for an approval, or to be continued.
    pub phase: Phase,
}

/// The first descendant that blocks this agent's turn while it waits for the user.
pub async fn held_up(handle: &AgentHandle) -> Option<HeldUp> {
    let mut open = waited_for(handle).await;
    while let Some(id) = open.pop() {
        let Ok(child) = handle.daemon.handle(id).await else {
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

/// The reason, as it is shown for the blocked agent.
pub async fn reason(daemon: &Daemon, held: &HeldUp) -> String {
    let name = &held.name;
    if held.phase == Phase::AwaitingApproval {
        return format!("a call of its subagent {name} is waiting for approval");
    }
    match last_note(daemon, held.handle.id, held.head).await {
        Some(note) => format!("its subagent {name} is waiting: {note}"),
        None => format!("its subagent {name} is waiting"),
    }
}

async fn waited_for(handle: &AgentHandle) -> Vec<AgentId> {
    let guard = handle.lock().await;
    let running = guard.state.children.running();
    let waited = running.filter(|(_, child)| !child.background);
    waited.map(|(agent, _)| *agent).collect()
}
