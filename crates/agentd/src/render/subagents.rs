//! Subagents, listed under the agents that started them.

use agentd_client::api::AgentLine;
use agentd_core::id::AgentId;
use std::collections::BTreeMap;

/// Each subagent after the agent that started it, the oldest first. A subagent whose parent is not in the list is
/// listed by itself.
pub fn sorted(agents: Vec<AgentLine>) -> Vec<AgentLine> {
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let mut below: BTreeMap<Option<AgentId>, Vec<AgentLine>> = BTreeMap::new();
    for agent in agents {
        let parent = agent.parent.as_ref().map(|parent| parent.id);
        let parent = parent.filter(|parent| ids.contains(parent));
        below.entry(parent).or_default().push(agent);
    }
    for (parent, children) in &mut below {
        if parent.is_some() {
            children.sort_by_key(|child| child.created_at);
        }
    }
    let mut sorted = Vec::new();
    let mut open = below.remove(&None).unwrap_or_default();
    open.reverse();
    while let Some(agent) = open.pop() {
        let children = below.remove(&Some(agent.id)).unwrap_or_default();
        open.extend(children.into_iter().rev());
        sorted.push(agent);
    }
    sorted
}

/// The names of a sorted list, each under its parent's.
pub fn drawn(agents: &[AgentLine]) -> Vec<String> {
    let mut depths: BTreeMap<AgentId, usize> = BTreeMap::new();
    let mut names = Vec::new();
    for agent in agents {
        let parent = agent.parent.as_ref();
        let parent = parent.and_then(|parent| depths.get(&parent.id));
        let depth = parent.map_or(0, |depth| depth + 1);
        depths.insert(agent.id, depth);
        names.push(match depth {
            0 => agent.name.clone(),
            depth => format!("{}└ {}", "  ".repeat(depth - 1), agent.name),
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Process, ProcessState, Usage};
    use agentd_core::event::Mode;
    use agentd_core::state::Phase;
    use agentd_core::time::Timestamp;
    use uuid::Uuid;

    fn line(n: u128, parent: Option<u128>) -> AgentLine {
        let id = |n| AgentId::new(Uuid::from_u128(n));
        AgentLine {
            id: id(n),
            next_due: None,
            no_tools: None,
            approvals: Vec::new(),
            title: None,
            model: None,
            provider: None,
            cwd: None,
            summary: None,
            name: format!("agent-{n}"),
            mode: Mode::Persistent,
            phase: Phase::Idle,
            process: Process {
                state: ProcessState::Asleep,
                pid: None,
            },
            generation: 1,
            conversations: 1,
            usage: Usage::default(),
            created_at: Timestamp::from_millis(n as i64),
            updated_at: Timestamp::from_millis(0),
            archived: false,
            parent: parent.map(|n| AgentRef {
                id: id(n),
                name: None,
            }),
        }
    }

    #[test]
    fn subagents_stand_under_their_parents() {
        let agents = vec![
            line(4, Some(2)),
            line(3, Some(1)),
            line(9, Some(77)),
            line(1, None),
            line(2, Some(1)),
        ];
        let sorted = sorted(agents);
        let expected = [
            "agent-9",
            "agent-1",
            "└ agent-2",
            "  └ agent-4",
            "└ agent-3",
        ];
        assert_eq!(drawn(&sorted), expected);
    }
}
