//! The tasks that serve the sockets of the agents' tools.

use agentd_core::id::AgentId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

#[derive(Default)]
pub struct ToolSockets(Mutex<HashMap<AgentId, AbortHandle>>);

impl ToolSockets {
    fn served(&self) -> MutexGuard<'_, HashMap<AgentId, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, agent: AgentId) -> bool {
        self.served().contains_key(&agent)
    }

    pub fn put(&self, agent: AgentId, server: AbortHandle) {
        if let Some(old) = self.served().insert(agent, server) {
            old.abort();
        }
    }

    /// Ends the server of an agent that is purged.
    pub fn close(&self, agent: AgentId) {
        if let Some(server) = self.served().remove(&agent) {
            server.abort();
        }
    }
}
