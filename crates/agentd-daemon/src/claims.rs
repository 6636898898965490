//! The fences of agents. The daemon claims an agent's fence before its first write to the agent, and keeps it for as
//! long as it lives. A claim is a commit; reading an agent, or opening its handle again, needs none.

use agentd_core::id::{AgentId, Seq};
use agentd_store::{Error, Fence, ReadQuery, Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Claims {
    store: Arc<dyn Store>,
    owner: String,
    /// Why the home is suspected to be a copy. If set, nothing may be written.
    read_only: Option<String>,
    /// The fences that this daemon holds. An entry is removed when another process has claimed the agent.
    held: Mutex<HashMap<AgentId, Fence>>,
}

impl Claims {
    pub fn new(store: Arc<dyn Store>, owner: String, read_only: Option<String>) -> Self {
        Self {
            store,
            owner,
            read_only,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<AgentId, Fence>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent's fence, which is claimed if this daemon does not hold it. An error if the caller's state, which ends
    /// at `head`, is out of date: the claim moved a damaged tail to quarantine, or an ending daemon appended more
    /// events.
    pub async fn fence(&self, agent: AgentId, head: Seq) -> Result<Fence> {
        if let Some(fence) = self.held().get(&agent) {
            return Ok(*fence);
        }
        if let Some(why) = self.read_only.clone() {
            return Err(Error::ReadOnly { why });
        }
        let claim = self.store.claim(agent, &self.owner).await?;
        let fence = claim.fence;
        self.held().insert(agent, fence);
        if let Some(damage) = claim.quarantined {
            return Err(Error::Damaged {
                agent,
                seq: damage.from,
                reason: damage.reason,
            });
        }
        // An agent that is being created has no events yet.
        if head > Seq::ZERO {
            let newer = self.store.read(ReadQuery::all(agent, head, 1)).await?;
            if !newer.events.is_empty() {
                return Err(Error::StaleFence {
                    agent,
                    held: fence.epoch.saturating_sub(1),
                    current: fence.epoch,
                });
            }
        }
        Ok(fence)
    }

    /// Drops a fence that is no longer valid: another process has claimed the agent, or its creation failed.
    pub fn lost(&self, agent: AgentId) {
        self.held().remove(&agent);
    }
}
