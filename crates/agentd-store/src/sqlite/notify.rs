//! Wakes the subscribers of an agent's journal after each commit, so that they need not poll.

use super::follower::Waker;
use agentd_core::id::{AgentId, Seq};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// One sender for each agent that has subscribers; other agents cost nothing.
pub struct Notify {
    agents: Mutex<HashMap<AgentId, watch::Sender<Seq>>>,
    commits: watch::Sender<u64>,
    follower: Waker,
}

pub struct Subscription(watch::Receiver<Seq>);

impl Subscription {
    pub fn mark_seen(&mut self) {
        self.0.mark_unchanged();
    }

    pub async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.0.changed().await
    }
}

impl Notify {
    pub fn subscribe(&self, agent: AgentId) -> Subscription {
        let mut agents = self.lock();
        let sender = agents
            .entry(agent)
            .or_insert_with(|| watch::Sender::new(Seq::ZERO));
        Subscription(sender.subscribe())
    }

    pub fn new(follower: Waker) -> Self {
        Self {
            agents: Mutex::default(),
            commits: watch::Sender::new(0),
            follower,
        }
    }

    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Called after a commit, never before.
    pub fn committed(&self, heads: impl IntoIterator<Item = (AgentId, Seq)>) {
        let mut agents = self.lock();
        if !agents.is_empty() {
            for (agent, head) in heads {
                let Some(sender) = agents.get(&agent) else {
                    continue;
                };
                if sender.send(head).is_err() {
                    agents.remove(&agent);
                }
            }
        }
        drop(agents);
        self.commits.send_modify(|count| *count += 1);
        self.follower.wake();
    }

    /// Wakes the subscribers of all agents, and the follower.
    pub fn wake_all(&self) {
        for sender in self.lock().values() {
            sender.send_modify(|_| {});
        }
        self.commits.send_modify(|count| *count += 1);
        self.follower.wake();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, watch::Sender<Seq>>> {
        // The map is consistent between any two statements, even if a thread panicked.
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
