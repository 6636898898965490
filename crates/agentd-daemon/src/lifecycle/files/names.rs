//! What a list says about changes whose content was purged: their paths, from the arguments of their calls, and the
//! numbers of their turns.

use super::lineage::Ancestor;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::Result;
use crate::spawn::blocking;
use crate::turns::{self, Within};
use agentd_client::api::NotRestored;
use agentd_core::event::{Body, Kind, Position};
use agentd_core::files::{History, Selection, paths_of_call};
use agentd_core::id::{AgentId, CallId, Seq, TurnId};
use agentd_core::message::{Arguments, Block};
use agentd_core::state::AgentState;
use agentd_store::ReadQuery;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Turns whose calls are read, the newest ones, and turns whose numbers are looked up.
const MOST_TURNS: usize = 500;
/// Events that are read at once.
const PAGE: usize = 100;

/// Names the files whose earlier content is no longer kept, as far as the journal still has their calls.
pub async fn add(
    handle: &AgentHandle,
    state: &AgentState,
    ancestors: &[Ancestor],
    history: &mut History,
) -> Result<()> {
    let unnamed = history.unnamed().filter_map(|lost| {
        let (turn, call) = (lost.turn?, lost.call.clone()?);
        Some((lost.event, turn, call))
    });
    let unnamed: Vec<(Position, TurnId, CallId)> = unnamed.collect();
    let mut turns: BTreeMap<(AgentId, TurnId), Vec<(Position, CallId)>> = BTreeMap::new();
    for (event, turn, call) in unnamed.into_iter().rev() {
        let is_full = turns.len() >= MOST_TURNS;
        let key = (event.agent, turn);
        if !is_full || turns.contains_key(&key) {
            turns.entry(key).or_default().push((event, call));
        }
    }
    for ((agent, turn), lost) in turns {
        let mut of_agent = ancestors.iter().map(|it| it.state.as_ref()).chain([state]);
        let of_agent = of_agent.find(|state| state.id == agent);
        let cwd = of_agent.and_then(|state| state.spec.cwd.clone());
        let calls = calls(&handle.daemon, agent, turn).await?;
        for (event, call) in lost {
            let Some((tool, arguments)) = calls.get(&call) else {
                continue;
            };
            let paths = paths_of_call(tool, arguments);
            let paths = absolute(cwd.clone().unwrap_or_default(), paths).await;
            history.name_by_call(event, &paths);
        }
    }
    Ok(())
}

/// The journal has paths without links; only the working directory is resolved here.
async fn absolute(cwd: String, paths: Vec<String>) -> Vec<String> {
    blocking(move || {
        let real = std::fs::canonicalize(&cwd);
        let real = real.unwrap_or_else(|_| Path::new(&cwd).to_owned());
        let real = real.to_string_lossy();
        let paths = paths.iter().map(|path| {
            let inside = Path::new(path).strip_prefix(&cwd).ok();
            let inside = inside.and_then(Path::to_str).unwrap_or(path);
            Selection::absolute(&real, inside)
        });
        paths.collect()
    })
    .await
}

type Calls = BTreeMap<CallId, (String, Map<String, Value>)>;

/// The calls of a turn, with their arguments as they were carried out.
async fn calls(daemon: &Daemon, agent: AgentId, turn: TurnId) -> Result<Calls> {
    let mut calls = Calls::new();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            turn: Some(turn),
            kinds: &[Kind::MessageAdded, Kind::CallRevised],
            ..ReadQuery::all(agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in page.events {
            match event.body {
                Body::MessageAdded(message) => {
                    let made = message.blocks.into_iter().filter_map(|block| match block {
                        Block::ToolCall(made) => Some(made),
                        _ => None,
                    });
                    calls.extend(made.filter_map(|made| match made.arguments {
                        Arguments::Object(arguments) => Some((made.id, (made.name, arguments))),
                        _ => None,
                    }));
                }
                Body::CallRevised(revised) => {
                    if let Some((_, arguments)) = calls.get_mut(&revised.call) {
                        *arguments = revised.arguments;
                    }
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) => after = next,
            None => return Ok(calls),
        }
    }
}

/// Adds the numbers of turns, of the agent's own.
pub async fn number(
    handle: &AgentHandle,
    state: &AgentState,
    history: &History,
    not_restored: &mut [NotRestored],
) -> Result<()> {
    let mut numbers: BTreeMap<TurnId, Option<usize>> = BTreeMap::new();
    for it in not_restored {
        let Some(id) = it.turn else { continue };
        if let Some(known) = numbers.get(&id) {
            it.turn_number = *known;
            continue;
        }
        if numbers.len() >= MOST_TURNS {
            continue;
        }
        let own = history.turn(id).filter(|(_, at)| at.agent == state.id);
        it.turn_number = match own {
            Some((conversation, at)) => {
                let within = Within { id, seq: at.seq };
                turns::number(&handle.daemon, state, conversation, within).await?
            }
            None => None,
        };
        numbers.insert(id, it.turn_number);
    }
    Ok(())
}
