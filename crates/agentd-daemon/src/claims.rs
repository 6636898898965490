//! The right to write agents: claimed at the first thing that is written, and kept for as long as this
//! daemon lives. To look at an agent costs no commit, and neither does to have it at hand again.

use agentd_core::id::{AgentId, Seq};
use agentd_store::{Error, Fence, ReadQuery, Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Claims {
    store: Arc<dyn Store>,
    owner: String,
    /// Why nothing may be written at all.
    read_only: Option<String>,
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

    /// Takes the agent over from whoever had it, unless it is ours. An error where its journal is not what
    /// whoever asks has seen, up to `head`: something damaged was set aside, or a daemon on its way out
    /// had one more thing to write.
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
        // One that is only being made has nothing yet.
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

    /// It is to be claimed again: somebody else has taken it over, or it never came to be.
    pub fn lost(&self, agent: AgentId) {
        self.held().remove(&agent);
    }
}
