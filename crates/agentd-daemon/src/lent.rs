//! MCP servers that clients lend to agents, in memory only: the servers of an editor's session, whose values may be secrets. A
//! server is lent for as long as its client is connected. The journal, the settings and the disk know nothing of its values.

use agentd_client::api::LentServers;
use agentd_core::id::AgentId;
use agentd_core::mcp::lent_digest;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Lent {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Of each agent, what clients lend to it, in the order in which they came.
    agents: HashMap<AgentId, BTreeMap<u64, LentServers>>,
    next: u64,
}

impl Lent {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number with which it is taken back.
    pub fn lend(&self, agent: AgentId, servers: LentServers) -> u64 {
        let mut inner = self.inner();
        inner.next += 1;
        let number = inner.next;
        let of_agent = inner.agents.entry(agent).or_default();
        of_agent.insert(number, servers);
        number
    }

    pub fn take_back(&self, agent: AgentId, number: u64) {
        let mut inner = self.inner();
        if let Some(of_agent) = inner.agents.get_mut(&agent) {
            of_agent.remove(&number);
            if of_agent.is_empty() {
                inner.agents.remove(&agent);
            }
        }
    }

    /// Of several servers with one name, the one that came last.
    pub fn of(&self, agent: AgentId) -> LentServers {
        let inner = self.inner();
        let all = inner.agents.get(&agent).into_iter();
        let all = all.flat_map(BTreeMap::values).cloned();
        all.flatten().collect()
    }

    /// The servers of the agent, and a text that changes with them.
    pub fn with_digest(&self, agent: AgentId) -> (LentServers, Option<String>) {
        let servers = self.of(agent);
        let digest = lent_digest(&servers);
        (servers, digest)
    }

    pub fn digest(&self, agent: AgentId) -> Option<String> {
        lent_digest(&self.of(agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::spec::McpServer;

    fn servers(command: &str) -> LentServers {
        let server = McpServer {
            command: Some(command.to_owned()),
            ..McpServer::default()
        };
        LentServers::from([("files".to_owned(), server)])
    }

    #[test]
    fn the_last_one_of_a_name_counts_until_it_is_taken_back() {
        let (lent, agent) = (Lent::default(), AgentId::from_bytes([1; 16]));
        assert_eq!(lent.digest(agent), None);
        let first = lent.lend(agent, servers("one"));
        let second = lent.lend(agent, servers("two"));
        assert_eq!(lent.of(agent), servers("two"));
        assert_eq!(lent.of(AgentId::from_bytes([2; 16])), LentServers::new());
        lent.take_back(agent, second);
        assert_eq!(lent.of(agent), servers("one"));
        assert_eq!(lent.digest(agent), lent_digest(&servers("one")));
        lent.take_back(agent, first);
        assert_eq!(lent.digest(agent), None);
    }
}
