//! Passes the caller's variables to an agent: keys of providers, for which its turn may wait, and variables of its tools.

mod supply;

pub use supply::{Follower, Supply};

use crate::error::Error;
use crate::outside;
use crate::providers;
use agentd_client::api::{Agent, Env, Start};
use agentd_client::{Client, Kind};
use agentd_core::spec::AgentSpec;
use std::collections::BTreeSet;

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
