//! Passes the caller's variables to an agent: keys of providers, for which its turn may wait, and variables of its tools.

use crate::error::Error;
use crate::outside;
use crate::providers;
use agentd_client::api::{Agent, Env, Start};
use agentd_client::{Client, Kind};
use agentd_core::event::PauseReason;
use agentd_core::spec::AgentSpec;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a turn that got its key may take to continue.
const CONTINUES: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The names of the caller's variables that the agent's settings pass to its tools. An unknown agent is reported by the
/// verb itself.
pub async fn passed(client: &Client, name: &str) -> Result<BTreeSet<String>, agentd_client::Error> {
    if outside::is_told() {
        // The variables of an agent's command are not sent.
        return Ok(BTreeSet::new());
    }
    match client.spec(name).await {
        Ok(spec) => Ok(providers::env_names(&spec)),
        Err(agentd_client::Error::Problem(_)) => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// The caller's variables for this agent.
pub async fn env_of(client: &Client, name: &str) -> Result<Env, Error> {
    let catalog = providers::catalog()?;
    let passed = passed(client, name).await?;
    Ok(providers::env(&catalog, &passed))
}

/// Sends the caller's environment to the agent. An unknown agent is reported by the verb itself.
pub async fn merge_env(client: &Client, name: &str) -> Result<(), Error> {
    let env = env_of(client, name).await?;
    send_env(client, name, env).await
}

async fn send_env(client: &Client, name: &str, env: Env) -> Result<(), Error> {
    match client.merge_env(name, &Start::with(env)).await {
        Ok(_) => Ok(()),
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Changes the agent's settings, and sends the caller's variables that the new settings pass to its tools.
pub async fn set_spec(client: &Client, name: &str, spec: &AgentSpec) -> Result<Agent, Error> {
    let env = providers::env(&providers::catalog()?, &providers::env_names(spec));
    send_env(client, name, env).await?;
    Ok(client.set_spec(name, spec).await?)
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
    let env = providers::env(&catalog, &BTreeSet::new());
    Ok(entry.is_some_and(|entry| entry.key_env.iter().any(|name| env.contains_key(name))))
}
