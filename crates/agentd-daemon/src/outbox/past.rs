//! What an agent was at an earlier event. A message is made of it, and not of the agent's present state: it has the same
//! content whenever it is made.

use crate::daemon::{AgentHandle, Daemon};
use agentd_core::event::LimitKind;
use agentd_core::id::{AgentId, Seq};
use agentd_core::outbox::binding::Release;
use agentd_core::state::AgentState;
use agentd_store::{ReadQuery, Result, Texts};

const PAGE: usize = 200;

/// How many states are kept.
const KEPT: usize = 4;

/// The earlier states that were needed last, one for each agent. A destination that is behind needs one for many events in
/// a row: the journal is not folded from its beginning for each of them.
#[derive(Default)]
pub struct Past {
    /// The last one was needed last.
    states: Vec<AgentState>,
}

impl Past {
    /// The name that an agent had at an event.
    pub async fn name_at(&mut self, handle: &AgentHandle, seq: Seq) -> Result<String> {
        {
            let guard = handle.lock().await;
            if guard.state.changes.last(Release::Rename) <= seq {
                return Ok(guard.state.name.clone());
            }
        }
        let state = self.state_at(&handle.daemon, handle.id, seq).await?;
        let name = state.name.clone();
        self.keep(state);
        Ok(name)
    }

    /// The budgets of which an event used the last part of 80 %.
    pub async fn reached_by(&mut self, handle: &AgentHandle, seq: Seq) -> Result<Vec<LimitKind>> {
        let known = handle.lock().await.state.near_limits.reached_by(seq);
        if let Some(known) = known {
            return Ok(known);
        }
        let state = self.state_at(&handle.daemon, handle.id, seq).await?;
        let reached = state.near_limits.reached_by(seq).unwrap_or_default();
        self.keep(state);
        Ok(reached)
    }

    fn keep(&mut self, state: AgentState) {
        self.states.push(state);
        let surplus = self.states.len().saturating_sub(KEPT);
        self.states.drain(..surplus);
    }

    /// Folds the journal up to an event, from the state that is kept or from the beginning.
    async fn state_at(
        &mut self,
        daemon: &Daemon,
        agent: AgentId,
        through: Seq,
    ) -> Result<AgentState> {
        let kept = self.states.iter().position(|state| state.id == agent);
        let kept = kept.map(|at| self.states.remove(at));
        let kept = kept.filter(|state| state.head <= through);
        let mut state = kept.unwrap_or_else(|| AgentState::new(agent));
        loop {
            let query = ReadQuery {
                texts: Texts::WithoutLong,
                ..ReadQuery::all(agent, state.head, PAGE)
            };
            let page = daemon.store.read(query).await?;
            if page.events.is_empty() {
                return Ok(state);
            }
            for event in &page.events {
                if event.seq > through {
                    return Ok(state);
                }
                state.apply(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::tests::bed;
    use agentd_core::event::{AgentRenamed, Body, Kind, RequestEnded, RequestOutcome, SpecSet};
    use agentd_core::id::{Incarnation, TryId};
    use agentd_core::spec::AgentSpec;
    use agentd_core::usage::Usage;

    /// A request of one token, under this budget for a conversation.
    fn under(budget: u64, n: u64) -> [Body; 2] {
        let mut spec = AgentSpec::default();
        spec.limits.conversation.tokens = Some(budget);
        let ended = RequestEnded {
            request: TryId {
                incarnation: Incarnation(1),
                n,
            },
            outcome: RequestOutcome::Completed,
            usage: Usage {
                input_tokens: 1,
                ..Usage::default()
            },
            estimated: false,
            cost: None,
            provider_request: None,
        };
        let spec = Box::new(spec);
        [SpecSet { spec }.into(), ended.into()]
    }

    #[tokio::test]
    async fn a_budget_that_was_reached_long_ago_is_still_known() {
        let bed = bed();
        let handle = bed.agent(None).await;
        // Again and again far from a budget, and then at it: more often than the state keeps.
        let requests = (1..=140).flat_map(|n| under([1, 1_000_000][n as usize % 2], n));
        let events = handle.lock().await.note(requests).await.unwrap();
        let ended = events.iter().filter(|it| it.kind() == Kind::RequestEnded);
        let ended: Vec<Seq> = ended.map(|it| it.seq).collect();
        let known = async |seq| {
            let present = handle.lock().await.state.near_limits.reached_by(seq);
            let reached = Past::default().reached_by(&handle, seq).await;
            (present, reached.unwrap())
        };
        let at = vec![LimitKind::ConversationTokens];
        assert_eq!(known(ended[1]).await, (None, at.clone()));
        assert_eq!(known(ended[0]).await, (None, vec![]));
        assert_eq!(known(ended[139]).await, (Some(at.clone()), at));
        assert_eq!(known(ended[138]).await, (Some(vec![]), vec![]));
    }

    #[tokio::test]
    async fn the_name_is_that_of_the_event() {
        let bed = bed();
        let handle = bed.agent(None).await;
        let mut guard = handle.lock().await;
        let before = guard.state.head;
        for name in ["writer", "author"] {
            let name = name.to_owned();
            let renamed = Body::from(AgentRenamed { name });
            guard.note([renamed]).await.unwrap();
        }
        let after = guard.state.head;
        drop(guard);
        for (seq, name) in [
            (before, "coder"),
            (before.next(), "writer"),
            (after, "author"),
        ] {
            let found = Past::default().name_at(&handle, seq).await;
            assert_eq!(found.unwrap(), name);
        }
        // Regression: each event folded the journal again, from its beginning.
        let mut past = Past::default();
        assert_eq!(past.name_at(&handle, before).await.unwrap(), "coder");
        past.states[0].name = "kept".to_owned();
        assert_eq!(past.name_at(&handle, before).await.unwrap(), "kept");
        let next = before.next();
        assert_eq!(past.name_at(&handle, next).await.unwrap(), "writer");
        // An earlier event needs an earlier state.
        assert_eq!(past.name_at(&handle, before).await.unwrap(), "coder");
        assert_eq!(past.states.len(), 1);
    }
}
