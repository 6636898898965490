//! Recovers the readable part of a damaged journal into a new one, and keeps the damaged files.
//!
//! - `rebuild`: writes the new journal.
//! - `swap`: replaces the damaged files by the new ones.
//!
//! No other process may have the journal open.

mod rebuild;
mod swap;

use super::salvage::{Followed, Salvage};
use super::store::SqliteStore;
use super::{Options, head, inspect, open};
use crate::damage::Damage;
use crate::error::{Error, Result};
use crate::store::{Append, Store as _};
use agentd_core::id::{AgentId, Seq};
use rebuild::Rebuilt;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use swap::Swap;

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repaired {
    /// Where the damaged files are kept. None if nothing was damaged.
    pub kept: Option<PathBuf>,
    pub agents: u64,
    pub events: u64,
    /// The agents that have lost events.
    pub hit: Vec<Hit>,
    /// Events whose agent could not be determined.
    pub nobodys: u64,
}

/// An agent that has lost events.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub agent: AgentId,
    pub name: Option<String>,
    /// Its last event that was recovered; zero if none was.
    pub recovered: Seq,
    pub damage: Damage,
}

impl SqliteStore {
    /// Recovers the readable part of a damaged journal, and keeps the damaged files. No other process may
    /// have it open.
    pub async fn repair(options: &Options) -> Result<Repaired> {
        repair(options).await
    }
}

/// Repairs the journal in a directory, if it is damaged.
async fn repair(options: &Options) -> Result<Repaired> {
    let earlier = swap::finish_earlier(options)?;
    match inspect::inspect(options) {
        Ok(report) if report.is_clean() => {
            return Ok(Repaired {
                kept: earlier,
                agents: report.agents,
                events: report.events,
                ..Repaired::default()
            });
        }
        Ok(_) | Err(Error::NoJournal { .. }) => {}
        // A newer agentd wrote it, the disk fails, or it is not a journal.
        Err(error) => return Err(error),
    }
    let swap = Swap::begin(options)?;
    let fresh = Options {
        dir: swap.work(),
        beside: Vec::new(),
        ..options.clone()
    };
    let (salvage, rebuilt) = build(options, &fresh, &swap.damaged())?;
    let hit = note_losses(&fresh, &salvage, &rebuilt.agents).await?;
    drop(salvage);
    let kept = swap.finish()?;
    Ok(Repaired {
        kept: Some(kept),
        agents: rebuilt.agents.iter().filter(|it| it.last.0 > 0).count() as u64,
        events: rebuilt.events,
        hit,
        nobodys: rebuilt.nobodys,
    })
}

fn build(options: &Options, fresh: &Options, damaged: &Path) -> Result<(Salvage, Rebuilt)> {
    let head = head::read(&damaged.join("journal.head"));
    let rows = Connection::open(fresh.dir.join("salvage.db"))?;
    rows.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    let salvage = Salvage::of_dir(options, damaged, &head, rows)?;
    let (databases, _) = open::open(fresh)?;
    let rebuilt = rebuild::rebuild(&databases, &salvage, damaged)?;
    drop(databases);
    // This head describes an empty journal. The next process that opens the journal writes a new one.
    std::fs::remove_file(fresh.head()).map_err(Error::RepairIo)?;
    Ok((salvage, rebuilt))
}

/// Records in each affected journal that its tail is lost.
async fn note_losses(fresh: &Options, salvage: &Salvage, agents: &[Followed]) -> Result<Vec<Hit>> {
    let store = SqliteStore::open(fresh.clone())?;
    let mut hit = Vec::new();
    let report = store.verify(None).await?;
    for followed in agents {
        let found = report.damaged.iter().find(|(id, _)| *id == followed.agent);
        let found = found.map(|(_, damage)| damage.clone());
        let Some(damage) = both(found, followed.damage.clone()) else {
            continue;
        };
        let recovered = Seq(damage.from.0.saturating_sub(1));
        let mut name = salvage.lines.get(&followed.num).map(|it| it.name.clone());
        if recovered.0 > 0 {
            name = note_loss(&store, followed).await?.or(name);
        }
        hit.push(Hit {
            agent: followed.agent,
            name: name.filter(|name| !name.is_empty()),
            recovered,
            damage,
        });
    }
    // No other process has it open, so this does not wait. Afterwards everything is in the main file.
    store.checkpoint().await?;
    Ok(hit)
}

/// The damage from the first unusable event to the last event that existed.
fn both(found: Option<Damage>, missing: Option<Damage>) -> Option<Damage> {
    match (found, missing) {
        (Some(found), Some(missing)) => Some(Damage {
            through: found.through.max(missing.through),
            ..found
        }),
        (found, missing) => found.or(missing),
    }
}

/// Records in the agent's journal what it has lost. Returns the agent's name.
async fn note_loss(store: &SqliteStore, followed: &Followed) -> Result<Option<String>> {
    let claim = match store.claim(followed.agent, "repair").await {
        Ok(claim) => claim,
        // Nothing usable is left of it, or a newer agentd wrote it.
        Err(Error::Damaged { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let loaded = match store.load(followed.agent).await {
        Ok(loaded) => loaded,
        // An ancestor of its conversation is damaged; its own events are intact.
        Err(Error::Damaged { .. } | Error::NoSuchAgent { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The claim has quarantined unusable events and has recorded that itself. Missing events are recorded here.
    let damage = followed.damage.as_ref();
    let Some(note) = damage.and_then(|damage| damage.note(&loaded.state)) else {
        return Ok(Some(loaded.state.name));
    };
    store.append(Append::new(claim.fence, vec![note])).await?;
    Ok(Some(loaded.state.name))
}
