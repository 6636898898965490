//! Completion of what only the daemon knows. It starts none: a Tab key changes nothing.

use crate::connect;
use agentd_client::Client;
use agentd_client::api::List;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::ffi::OsStr;
use std::time::Duration;

/// The variable that makes this program complete a command line instead of running it.
pub const VARIABLE: &str = "AGENTD_COMPLETE";

/// As long as somebody waits for a Tab key.
const PATIENCE: Duration = Duration::from_secs(1);
const MOST: usize = 200;

/// The names of agents.
pub fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names(current, false))
}

/// The names of those that were put away.
pub fn archived() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = names(current, false);
        all.extend(names(current, true));
        all
    })
}

fn names(current: &OsStr, archived: bool) -> Vec<CompletionCandidate> {
    let list = List {
        prefix: Some(current.to_string_lossy().into_owned()),
        by_name: true,
        limit: Some(MOST),
        archived,
        ..List::default()
    };
    // Without an answer there is nothing to complete, and nobody to tell.
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
