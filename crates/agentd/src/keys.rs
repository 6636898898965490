//! The caller's key, for an agent that may wait for it.

use crate::error::Error;
use crate::providers;
use agentd_client::api::{Agent, Start};
use agentd_client::{Client, Kind};
use agentd_core::event::PauseReason;
use std::time::{Duration, Instant};

/// How long a turn may take to go on that has its key.
const GOES_ON: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Brings the agent what the caller works with. Whether there is such an agent is for the verb to say.
pub async fn merge_env(client: &Client, name: &str) -> Result<(), Error> {
    let env = providers::env(&providers::catalog()?);
    match client.merge_env(name, &Start::with(env)).await {
        Ok(_) => Ok(()),
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The agent, once its turn has gone on, where that waits for a key which the caller has.
pub async fn continue_turn(client: &Client, agent: Agent) -> Result<Agent, Error> {
    let waits = |agent: &Agent| agent.paused == Some(PauseReason::MissingKey);
    if !waits(&agent) || !has_key(&agent)? {
        return Ok(agent);
    }
    merge_env(client, &agent.name).await?;
    let deadline = Instant::now() + GOES_ON;
    loop {
        let agent = client.agent(&agent.id.to_string()).await?;
        if !waits(&agent) || Instant::now() >= deadline {
            return Ok(agent);
        }
        // tidy: polls for the turn to go on
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
