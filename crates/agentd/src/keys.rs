//! Passes the caller's provider keys to an agent whose turn may wait for one.

use crate::error::Error;
use crate::providers;
use agentd_client::api::{Agent, Start};
use agentd_client::{Client, Kind};
use agentd_core::event::PauseReason;
use std::time::{Duration, Instant};

/// How long a turn that got its key may take to continue.
const CONTINUES: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Sends the caller's environment to the agent. An unknown agent is reported by the verb itself.
pub async fn merge_env(client: &Client, name: &str) -> Result<(), Error> {
    let env = providers::env(&providers::catalog()?);
    match client.merge_env(name, &Start::with(env)).await {
        Ok(_) => Ok(()),
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// If the turn waits for a key that the caller has, sends the key and waits until the turn continues.
pub async fn continue_turn(client: &Client, agent: Agent) -> Result<Agent, Error> {
    let waits = |agent: &Agent| agent.paused == Some(PauseReason::MissingKey);
    if !waits(&agent) || !has_key(&agent)? {
        return Ok(agent);
    }
    merge_env(client, &agent.name).await?;
    let deadline = Instant::now() + CONTINUES;
    loop {
        let agent = client.agent(&agent.id.to_string()).await?;
        if !waits(&agent) || Instant::now() >= deadline {
            return Ok(agent);
        }
        // tidy: polls for the turn to continue
        tokio::time::sleep(POLL).await;
    }
}

fn has_key(agent: &Agent) -> Result<bool, Error> {
    let catalog = providers::catalog()?;
    let entry = agent
        .provider
        .as_ref()
        .and_then(|name| catalog.provider(name));
    let env = providers::env(&catalog);
    Ok(entry.is_some_and(|entry| entry.key_env.iter().any(|name| env.contains_key(name))))
}
