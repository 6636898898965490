//! Providers whose key an agent could not find by itself. No key is read or shown.

use super::Finding;
use crate::connect;
use crate::error::Error;
use crate::providers::{self, KeySource};
use agentd_client::api::{AgentLine, Daemon, List};
use agentd_core::catalog::Catalog;
use std::collections::{BTreeMap, BTreeSet};

/// Agents that are looked at; the most recently used ones.
const AGENTS: usize = 200;

pub async fn look(daemon: Option<&Daemon>) -> Vec<Finding> {
    let catalog = match providers::catalog() {
        Ok(catalog) => catalog,
        Err(error) => {
            let what = format!("config.toml cannot be used: {error}");
            return vec![Finding::problem("settings", what, "correct the file")];
        }
    };
    let stored = providers::stored();
    let known: BTreeMap<&str, Option<KeySource>> = catalog
        .providers()
        .map(|entry| (entry.name.as_str(), providers::key_source(entry, &stored)))
        .collect();
    let with_key = known.iter().filter(|(_, source)| source.is_some());
    let names: Vec<&str> = with_key.map(|(name, _)| *name).collect();
    let mut findings = vec![match names.is_empty() {
        true => Finding::warning(
            "providers",
            "no provider has a key, in this shell or stored",
            "`agentd init`, or `agentd secret set NAME`",
        ),
        false => Finding::ok(
            "providers",
            format!("a key was found for {}", names.join(", ")),
        ),
    }];
    if daemon.is_some() {
        let agents = agents().await.unwrap_or_default();
        findings.extend(unattended(&catalog, &agents, &stored));
    }
    findings
}

async fn agents() -> Result<Vec<AgentLine>, Error> {
    let list = List {
        limit: Some(AGENTS),
        // Their providers are among the words.
        words: true,
        ..List::default()
    };
    Ok(connect::client_of_any()?.agents(&list).await?.agents)
}

/// Agents that could not start by themselves, because their key is only in callers' environments.
fn unattended(
    catalog: &Catalog,
    agents: &[AgentLine],
    stored: &BTreeSet<String>,
) -> Option<Finding> {
    let needs_caller = |agent: &&AgentLine| {
        let entry = agent.provider.as_ref();
        let entry = entry.and_then(|name| catalog.provider(name));
        entry.is_some_and(|entry| {
            let has_file = entry.key_file.is_some() || entry.key_command.is_some();
            let has_stored = entry.key_env.iter().any(|name| stored.contains(name));
            !entry.key_env.is_empty() && !has_file && !has_stored
        })
    };
    let names: Vec<&str> = agents
        .iter()
        .filter(needs_caller)
        .map(|agent| agent.name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let what = format!(
        "these agents cannot start by themselves, because their key is only in the environment of commands: {}",
        names.join(", ")
    );
    let fix = "`agentd secret set NAME` stores a key; or `key_file` in config.toml";
    Some(Finding::warning("keys", what, fix))
}
