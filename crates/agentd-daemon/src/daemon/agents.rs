//! The agents in use, by id. An agent is never in memory twice.

use super::Agent;
use agentd_client::api::Env;
use agentd_core::id::AgentId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// How many agents are in memory before idle ones are dropped.
const AGENTS: usize = 64;

/// Filled by the first task that needs the agent, while later ones wait. Each agent has its own slot, so one that opens
/// slowly does not delay the others.
type Slot = Arc<OnceCell<Arc<Agent>>>;

#[derive(Default)]
pub struct Agents(Mutex<HashMap<AgentId, Slot>>);

impl Agents {
    fn slots(&self) -> MutexGuard<'_, HashMap<AgentId, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, agent: AgentId) -> Slot {
        let mut slots = self.slots();
        if slots.len() >= AGENTS && !slots.contains_key(&agent) {
            slots.retain(|_, slot| is_used(slot));
        }
        Arc::clone(slots.entry(agent).or_default())
    }

    /// The agent, opened if it is not in use.
    pub async fn get<E, F>(&self, agent: AgentId, open: impl FnOnce() -> F) -> Result<Arc<Agent>, E>
    where
        F: Future<Output = Result<Agent, E>>,
    {
        let slot = self.slot(agent);
        let opened = slot.get_or_try_init(|| async { open().await.map(Arc::new) });
        match opened.await {
            Ok(opened) => Ok(Arc::clone(opened)),
            Err(error) => {
                self.drop_empty(agent, &slot);
                Err(error)
            }
        }
    }

    /// A new agent, unless it is in use already.
    pub async fn make(&self, agent: AgentId, env: Arc<Env>) -> Arc<Agent> {
        let slot = self.slot(agent);
        let made = slot.get_or_init(|| async { Arc::new(Agent::new(agent, env)) });
        Arc::clone(made.await)
    }

    pub fn all(&self) -> Vec<Arc<Agent>> {
        let slots = self.slots();
        slots
            .values()
            .filter_map(|slot| slot.get().cloned())
            .collect()
    }

    /// Removes an agent, unless a task other than the caller uses it.
    pub fn forget(&self, agent: &Arc<Agent>) {
        let mut slots = self.slots();
        let is_it = |slot: &Slot| {
            let known = slot.get();
            known.is_some_and(|known| Arc::ptr_eq(known, agent))
        };
        // One reference is the slot's, the other the caller's.
        let is_only_ours = Arc::strong_count(agent) == 2;
        if is_only_ours && slots.get(&agent.id).is_some_and(is_it) {
            slots.remove(&agent.id);
        }
    }

    /// Removes a slot that could not be filled, unless another task is about to fill it.
    fn drop_empty(&self, agent: AgentId, slot: &Slot) {
        let mut slots = self.slots();
        let is_it = |known: &Slot| Arc::ptr_eq(known, slot);
        // One reference is the map's, the other the caller's.
        let is_only_ours = Arc::strong_count(slot) == 2;
        if slot.get().is_none() && is_only_ours && slots.get(&agent).is_some_and(is_it) {
            slots.remove(&agent);
        }
    }
}

/// Whether a task has the agent or waits for it, or the agent itself has work.
fn is_used(slot: &Slot) -> bool {
    let is_awaited = Arc::strong_count(slot) > 1;
    let is_needed = |agent: &Arc<Agent>| Arc::strong_count(agent) > 1 || !agent.is_idle();
    is_awaited || slot.get().is_some_and(is_needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use uuid::Uuid;

    fn id(n: u128) -> AgentId {
        AgentId::new(Uuid::from_u128(n))
    }

    async fn opened(agents: &Agents, n: u128) -> Arc<Agent> {
        let open = || async { Ok::<_, ()>(Agent::new(id(n), Arc::default())) };
        agents.get(id(n), open).await.unwrap()
    }

    #[tokio::test]
    async fn an_agent_is_opened_once_for_all_that_need_it() {
        let agents = Agents::default();
        let (first, second) = tokio::join!(opened(&agents, 1), opened(&agents, 1));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(agents.all().len(), 1);
    }

    #[tokio::test]
    async fn an_agent_that_opens_slowly_holds_up_no_other() {
        let agents = Agents::default();
        let (open, wait) = oneshot::channel::<()>();
        let slow = agents.get(id(1), || async {
            wait.await.unwrap();
            Ok::<_, ()>(Agent::new(id(1), Arc::default()))
        });
        let others = async {
            opened(&agents, 2).await;
            open.send(()).unwrap();
        };
        let (slow, ()) = tokio::join!(slow, others);
        assert_eq!(slow.unwrap().id, id(1));
    }

    #[tokio::test]
    async fn an_agent_that_cannot_be_opened_is_tried_again() {
        let agents = Agents::default();
        let failed = agents.get(id(1), || async { Err::<Agent, _>("damaged") });
        assert_eq!(failed.await.err(), Some("damaged"));
        assert!(agents.slots().is_empty());
        assert_eq!(opened(&agents, 1).await.id, id(1));
    }

    #[tokio::test]
    async fn an_agent_that_another_task_uses_is_not_forgotten() {
        let agents = Agents::default();
        let (first, second) = (opened(&agents, 1).await, opened(&agents, 1).await);
        agents.forget(&first);
        assert_eq!(agents.all().len(), 1);
        drop(second);
        agents.forget(&first);
        assert!(agents.all().is_empty());
    }

    #[tokio::test]
    async fn only_unused_agents_are_dropped() {
        let agents = Agents::default();
        let used = opened(&agents, 0).await;
        for n in 1..=AGENTS as u128 {
            opened(&agents, n).await;
        }
        assert!(Arc::ptr_eq(&used, &opened(&agents, 0).await));
        assert!(agents.slots().len() < AGENTS);
    }
}
