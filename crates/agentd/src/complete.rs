//! Completion of values that come from the daemon. It does not start a daemon: completion changes nothing.

use crate::{connect, providers};
use agentd_client::Client;
use agentd_client::api::List;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

/// The variable that makes this program complete a command line instead of running it.
pub const VARIABLE: &str = "AGENTD_COMPLETE";

/// Timeout of a completion.
const PATIENCE: Duration = Duration::from_secs(1);
const MOST: usize = 200;

/// The names of agents that are not archived.
pub fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names(current, false))
}

/// The names of all agents, archived ones included.
pub fn archived() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = names(current, false);
        all.extend(names(current, true));
        all
    })
}

/// The variables from which providers read their keys.
pub fn key_names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let catalog = providers::catalog();
        let names = catalog.map(|catalog| catalog.key_names());
        beginning_with(current, names.unwrap_or_default())
    })
}

/// The names of stored secrets.
pub fn stored_secrets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning_with(current, providers::stored()))
}

fn beginning_with(current: &OsStr, names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = names.into_iter();
    let fitting = names.filter(|name| name.starts_with(&*current));
    fitting.map(CompletionCandidate::new).collect()
}

fn names(current: &OsStr, archived: bool) -> Vec<CompletionCandidate> {
    let list = List {
        prefix: Some(current.to_string_lossy().into_owned()),
        by_name: true,
        limit: Some(MOST),
        archived,
        ..List::default()
    };
    // Without an answer there is nothing to complete, and no way to report an error.
    ask(&list).unwrap_or_default()
}

fn ask(list: &List) -> Option<Vec<CompletionCandidate>> {
    let client: Client = connect::client_of_any().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let asked = async { tokio::time::timeout(PATIENCE, client.agents(list)).await };
    let agents = runtime.block_on(asked).ok()?.ok()?;
    let names = agents.agents.into_iter();
    let candidate = |name: String, phase: &str| {
        CompletionCandidate::new(name).help(Some(phase.to_owned().into()))
    };
    Some(
        names
            .map(|agent| candidate(agent.name, agent.phase.name()))
            .collect(),
    )
}
