//! How many files each turn changed.

use crate::daemon::Daemon;
use crate::error::Result;
use agentd_core::event::{Body, KeptBy, Kind, Scan};
use agentd_core::id::{CallId, Seq, TurnId};
use agentd_core::state::AgentState;
use agentd_store::{ReadQuery, Texts};
use std::collections::{BTreeMap, BTreeSet};

/// Events that are read at once.
const PAGE: usize = 1000;

/// What turns changed, from one turn on. A turn that changed nothing is missing.
#[derive(Debug, Default)]
pub struct Counts {
    pub files: BTreeMap<TurnId, u64>,
    /// The turns of which it is not known what their commands changed.
    pub unknown: BTreeSet<TurnId>,
}

/// The number of files that each turn changed, from this turn on.
pub async fn counts(daemon: &Daemon, state: &AgentState, first: TurnId) -> Result<Counts> {
    // Ids of turns are in the order of their time; those of the sequence before it are not needed.
    let mut paths: BTreeMap<TurnId, BTreeSet<String>> = BTreeMap::new();
    // The files of calls, until it is known that a call failed and changed nothing.
    let mut calls: BTreeMap<(CallId, String), TurnId> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    let mut more: BTreeMap<TurnId, u64> = BTreeMap::new();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            kinds: &[Kind::FileKept, Kind::ToolEnded, Kind::FilesScanned],
            texts: Texts::WithoutLong,
            ..ReadQuery::all(state.id, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in page.events {
            match (event.body, event.turn) {
                (Body::FileKept(kept), Some(turn)) if turn >= first => match kept.by {
                    KeptBy::Call { call } => drop(calls.insert((call, kept.path), turn)),
                    KeptBy::Restore { .. } => {
                        paths.entry(turn).or_default().insert(kept.path);
                    }
                },
                (Body::ToolEnded(ended), _) if ended.has_failed_early() => {
                    calls.retain(|(call, _), _| *call != ended.call);
                }
                (Body::FilesScanned(scanned), _) if scanned.turn >= first => match scanned.found {
                    Scan::Known { files, more: rest } => {
                        let names = files.into_iter().map(|file| file.path);
                        paths.entry(scanned.turn).or_default().extend(names);
                        *more.entry(scanned.turn).or_default() += rest;
                    }
                    Scan::Unknown { .. } => drop(unknown.insert(scanned.turn)),
                },
                _ => {}
            }
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    for ((_, path), turn) in calls {
        paths.entry(turn).or_default().insert(path);
    }
    let counts = paths.into_iter().map(|(turn, paths)| {
        let rest = more.get(&turn).copied().unwrap_or(0);
        (turn, paths.len() as u64 + rest)
    });
    let files = counts.filter(|(_, count)| *count > 0).collect();
    Ok(Counts { files, unknown })
}
