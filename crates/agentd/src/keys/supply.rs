//! Sends the caller's keys to an agent whenever its turn, or the turn of one of its subagents, pauses for one. A new daemon
//! has no keys, and the pause may come long after it was started.

use crate::error::Error;
use crate::follow::Seen;
use crate::providers;
use agentd_client::Client;
use agentd_client::api::Agent;
use agentd_core::event::{Body, PauseReason};
use agentd_core::id::AgentId;
use agentd_core::spec::AgentSpec;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a turn that got its key may take to continue.
const CONTINUES: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// How often an agent with running subagents is looked at: their pauses are not in its own journal.
const LOOK: Duration = Duration::from_secs(1);

pub struct Supply {
    client: Client,
    /// Agents whose turns did not continue with the caller's keys. They are not tried again.
    not_helped: BTreeSet<AgentId>,
}

impl Supply {
    pub const fn new(client: Client) -> Self {
        Self {
            client,
            not_helped: BTreeSet::new(),
        }
    }

    /// If a turn waits for a key that the caller has, sends the key and waits until the turn continues. Returns the agent
    /// as it is then.
    pub async fn continue_turn(&mut self, agent: Agent) -> Result<Agent, Error> {
        let helped = self.helped_by_caller(&agent).await?;
        if helped.is_empty() {
            return Ok(agent);
        }
        let id = agent.id.to_string();
        super::merge_env(&self.client, &id).await?;
        let deadline = Instant::now() + CONTINUES;
        loop {
            let agent = self.client.agent(&id).await?;
            let waiting: Vec<AgentId> = waiting(&agent).filter(|it| helped.contains(it)).collect();
            if waiting.is_empty() {
                return Ok(agent);
            }
            if Instant::now() >= deadline {
                self.not_helped.extend(waiting);
                return Ok(agent);
            }
            // tidy: polls for the turn to continue
            tokio::time::sleep(POLL).await;
        }
    }

    /// The agents whose turns wait for a key that the caller has.
    async fn helped_by_caller(&self, agent: &Agent) -> Result<BTreeSet<AgentId>, Error> {
        let mut helped = BTreeSet::new();
        for id in waiting(agent).filter(|id| !self.not_helped.contains(id)) {
            match self.client.spec(&id.to_string()).await {
                Ok(spec) if has_key(&spec)? => {
                    helped.insert(id);
                }
                // A subagent may have ended meanwhile.
                Ok(_) | Err(agentd_client::Error::Problem(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(helped)
    }
}

fn waiting(agent: &Agent) -> impl Iterator<Item = AgentId> {
    agent.missing_keys.iter().map(|waiting| waiting.id)
}

/// Whether the caller has what an agent with these settings cannot run without.
fn has_key(spec: &AgentSpec) -> Result<bool, Error> {
    let catalog = providers::catalog()?;
    let env = providers::env(&catalog, &providers::env_names(spec));
    if spec.is_outer() {
        return Ok(spec.clone().resolve_env(&env).is_ok());
    }
    let choice = catalog.resolve(spec.provider.as_deref(), spec.model.as_deref());
    let names = choice.map_or_else(|_| Vec::new(), |choice| choice.provider.key_env);
    Ok(names.iter().any(|name| env.contains_key(name)))
}

/// Supplies the keys of an agent whose events a command follows without waiting for an answer.
pub struct Follower {
    name: String,
    client: Client,
    /// The agent may wait for a key.
    is_due: Notify,
}

impl Follower {
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            client,
            is_due: Notify::new(),
        }
    }

    /// Notes what was seen of the agent.
    pub fn seen(&self, seen: &Seen) {
        let is_due = match seen {
            // A daemon that was started meanwhile has no keys.
            Seen::CaughtUp | Seen::Found => true,
            Seen::Event(event) => match &event.body {
                Body::TurnPaused(paused) => paused.reason == PauseReason::MissingKey,
                Body::SubagentStarted(_) => true,
                _ => false,
            },
            Seen::Delta(_) | Seen::Progress(_) | Seen::Lost => false,
        };
        if is_due {
            self.is_due.notify_one();
        }
    }

    /// Runs as long as the events are followed. An error is not reported: the agent says what it waits for.
    pub async fn run(&self) -> Infallible {
        let mut supply = Supply::new(self.client.clone());
        loop {
            self.is_due.notified().await;
            loop {
                let Ok(agent) = self.client.agent(&self.name).await else {
                    break;
                };
                let Ok(agent) = supply.continue_turn(agent).await else {
                    break;
                };
                if agent.children.iter().all(|child| child.outcome.is_some()) {
                    break;
                }
                // tidy: polls for the pauses of its subagents
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}
