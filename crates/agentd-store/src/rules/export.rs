//! What is exported with an agent.

use super::Journals;
use crate::error::Result;
use agentd_core::id::{AgentId, Seq};
use std::collections::BTreeMap;

/// The agents that this agent's branches refer to, directly or through other agents, and up to which event.
pub fn ancestors(journals: &impl Journals, agent: AgentId) -> Result<BTreeMap<AgentId, Seq>> {
    let mut needed = BTreeMap::new();
    let mut to_look_at = vec![agent];
    while let Some(next) = to_look_at.pop() {
        let (state, _) = journals.state(next)?;
        for origin in state
            .tree
            .iter()
            .filter_map(|conversation| conversation.from)
        {
            if origin.agent == agent || origin.agent == next {
                continue;
            }
            let through = needed.entry(origin.agent).or_insert_with(|| {
                to_look_at.push(origin.agent);
                Seq::ZERO
            });
            *through = (*through).max(origin.seq);
        }
    }
    Ok(needed)
}
