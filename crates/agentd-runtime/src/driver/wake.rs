//! Waking an agent: determining and recording what an earlier process left unfinished, then continuing the turn.

use super::{Driver, Hooks, Journal, JournalError, Observed, Observer, Tools};
use crate::provider::Provider;
use agentd_core::draft::{self, Reply};
use agentd_core::event::After;
use agentd_core::id::{Incarnation, TryId};
use agentd_core::message::ToolCall;
use agentd_core::recover::{self, CallFact, Facts};
use agentd_core::state::{AgentState, Applied, StartedCall};
use agentd_core::time::Timestamp;
use agentd_core::turn::{self, Machine, Policy};
use agentd_core::window::Window;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a driver works with.
pub struct Parts {
    pub journal: Box<dyn Journal>,
    pub provider: Provider,
    pub tools: Arc<dyn Tools>,
    /// `None` without a daemon.
    pub hooks: Option<Arc<dyn Hooks>>,
    pub observer: Observer,
    pub clock: fn() -> Timestamp,
}

/// An agent as folded from its journal.
#[derive(Debug)]
pub struct Folded {
    pub state: AgentState,
    pub window: Window,
    /// The stored draft of the newest request.
    pub draft: Option<(TryId, Vec<u8>)>,
    /// The incarnation of the process that wakes the agent; its appends are numbered under it.
    pub incarnation: Incarnation,
}

impl Folded {
    /// The calls that were started and have no result.
    fn started(&self) -> Vec<(ToolCall, StartedCall)> {
        let turn = self.state.turn.as_ref();
        let started = |call: &ToolCall| turn?.calls.get(&call.id).cloned();
        let open = self.window.open_calls();
        open.filter_map(|call| Some((call.clone(), started(call)?)))
            .collect()
    }

    /// The draft, if it belongs to the request that was in flight.
    fn reply(&self) -> Reply {
        let turn = self.state.turn.as_ref();
        let sent = turn
            .and_then(|turn| turn.in_flight)
            .map(|sent| sent.request);
        match &self.draft {
            Some((request, bytes)) if Some(*request) == sent => draft::decode(bytes)
                .unwrap_or_else(|damaged| {
                    tracing::warn!(%damaged, "draft damaged: its end is ignored");
                    damaged.readable
                }),
            _ => Reply::default(),
        }
    }
}

impl Driver {
    /// Recovers the agent, and takes over calls and tasks that are still running.
    pub async fn wake(
        mut folded: Folded,
        after: After,
        mut policy: Policy,
        mut parts: Parts,
    ) -> Result<Self, JournalError> {
        policy.hooks = match parts.hooks {
            Some(_) => turn::Hooks::Asked,
            None => turn::Hooks::None,
        };
        parts.tools.recall(&folded.window);
        let turn = folded.state.turn.as_ref();
        if turn.is_some_and(|turn| turn.ran_commands) {
            parts.tools.resumes_commands();
        }
        let started = folded.started();
        let mut calls = BTreeMap::new();
        let mut ended = BTreeMap::new();
        for (call, started) in &started {
            let fact = match parts.tools.find(call, started).await {
                // Treated as a call that ends now: hooks get its result before it is recorded.
                CallFact::Ended(finished) if parts.hooks.is_some() => {
                    ended.insert(call.id.clone(), finished);
                    CallFact::Running
                }
                fact => fact,
            };
            calls.insert(call.id.clone(), fact);
        }
        let facts = Facts {
            incarnation: folded.incarnation,
            after,
            draft: folded.reply(),
            calls,
            price: policy.price,
            full_access: !parts.tools.is_confined(),
        };
        let recovery = recover::recover(&folded.state, &folded.window, &facts, (parts.clock)());
        let events = parts.journal.append(recovery.events, recovery.ends).await?;
        for event in &events {
            if folded.state.apply(event) == Applied::PointerMoved {
                let text = "it has switched to another conversation".to_owned();
                return Err(JournalError::Superseded(text));
            }
            if Some(event.conversation) == folded.state.tree.current() {
                folded.window.apply(event);
            }
            (parts.observer)(Observed::Event(event));
        }
        if events.iter().any(super::ends_turn) {
            (parts.observer)(Observed::Checkpoint(&folded.state, &folded.window));
        }
        if !events.is_empty() {
            parts.tools.recall(&folded.window);
        }
        let tasks: Vec<_> = folded
            .state
            .tasks
            .running()
            .map(|(id, task)| (*id, task.boot))
            .collect();
        let machine = Machine::new(folded.state, folded.window, policy, recovery.running);
        let mut driver = Self::new(machine, parts);
        for (call, started) in started {
            match (ended.remove(&call.id), facts.calls.get(&call.id)) {
                (Some(finished), _) => driver.found_tool(call, finished),
                (None, Some(CallFact::Running)) => driver.resume_tool(call, started),
                (None, Some(CallFact::Unknown)) => driver.lost_tool(&call),
                (None, _) => {}
            }
        }
        for (task, boot) in tasks {
            driver.watch_task(task, boot);
        }
        Ok(driver)
    }
}
