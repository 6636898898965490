//! Restores a backup into an empty home. The home is built elsewhere first (`staging`), so it exists completely or not at all. It
//! has an identity of its own, its agents are stopped, and what was purged after the backup is purged in it.

mod purges;
mod staging;
mod stopped;

use super::chain::Chain;
use super::unpack::{Files, unpack};
use super::{Error, Progress, Result, Watch};
use crate::home;
use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_client::api;
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::{Options, Report, SqliteStore};
use serde::Serialize;
use staging::Staging;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Restore {
    pub file: PathBuf,
    /// The new home: an empty directory, or none yet.
    pub into: PathBuf,
    /// The home that the backup was made of, if it still exists: its purges are applied too.
    pub old_home: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredBackup {
    pub home: String,
    pub home_id: String,
    /// The home that the backup was made of.
    pub copied_from: String,
    pub file: String,
    #[serde(with = "api::time")]
    pub made_at: Timestamp,
    pub chain: Vec<String>,
    pub agents: u64,
    pub events: u64,
    pub files: u64,
    /// The agents that were not stopped before.
    pub stopped: u64,
    /// The conversations that were purged after the backup.
    pub purged: u64,
}

/// A home whose journal and files are complete, but which is not in use yet.
struct Unpacked {
    staging: Staging,
    chain: Chain,
    report: Report,
}

pub async fn restore(ask: Restore, watch: Watch) -> Result<RestoredBackup> {
    let (file, into, watched) = (ask.file.clone(), ask.into.clone(), Arc::clone(&watch));
    // If the command is interrupted, this work ends at its next step and deletes what it has made.
    let unpacked = blocking(move || -> Result<Unpacked> {
        let staging = Staging::create(&into)?;
        let layout = Layout::new(staging.dir());
        let chain = Chain::open(&file)?;
        let report = unpack(&chain, &options(&layout), &Files::Into(layout), &watched)?;
        Ok(Unpacked {
            staging,
            chain,
            report,
        })
    })
    .await?;
    failpoint::hit("in", "restore-backup");
    let layout = Layout::new(unpacked.staging.dir());
    let opened = layout.clone();
    let store = blocking(move || SqliteStore::open(options(&opened))).await?;
    let store = Arc::new(store);
    let wanted = purges::wanted(&ask).await?;
    let purged = purges::apply(&*store, &layout, wanted).await?;
    let stopped = stopped::stop_all(&*store).await?;
    // Before the files are synced: closing moves the log into the database.
    blocking(move || drop(store)).await;
    let bytes = unpacked.chain.bytes();
    let of = Some(bytes);
    if !watch(Progress { bytes, of }) {
        return Err(Error::Cancelled);
    }
    blocking(move || finish(&ask, unpacked, (stopped, purged))).await
}

fn options(layout: &Layout) -> Options {
    Options::new(layout.home())
}

/// Gives the home its identity and its name.
fn finish(
    ask: &Restore,
    unpacked: Unpacked,
    (stopped, purged): (u64, u64),
) -> Result<RestoredBackup> {
    let Unpacked {
        mut staging,
        chain,
        report,
    } = unpacked;
    let last = chain.last()?;
    let layout = Layout::new(staging.dir());
    layout.make().map_err(Error::io(&ask.into))?;
    let identity = home::adopt_copy_of(&layout, staging.final_dir(), last.manifest.home);
    let identity = identity.map_err(Error::io(&ask.into))?;
    let dir = File::open(staging.dir()).map_err(Error::io(&ask.into))?;
    rustix::fs::syncfs(&dir).map_err(|error| Error::io(&ask.into)(error.into()))?;
    failpoint::hit("before", "restore-backup-rename");
    staging.become_home()?;
    Ok(RestoredBackup {
        home: ask.into.display().to_string(),
        home_id: identity.id.to_string(),
        copied_from: last.manifest.home.to_string(),
        file: last.path.display().to_string(),
        made_at: Timestamp::from_millis(last.manifest.made_at),
        chain: chain.names(),
        // What was read, not what the manifest claims.
        agents: report.agents,
        events: report.events,
        files: last.manifest.files.len() as u64,
        stopped,
        purged,
    })
}
