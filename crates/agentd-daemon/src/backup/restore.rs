//! Restores a backup into an empty home. The home is built in a directory beside it and renamed, so it exists completely or not at
//! all. It has an identity of its own, its agents are stopped, and what was purged after the backup is purged in it.

mod purges;
mod stopped;

use super::chain::Chain;
use super::unpack::{Files, unpack};
use super::{Error, Result, Watch};
use crate::clock;
use crate::home;
use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_client::api;
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::{Options, SqliteStore};
use serde::Serialize;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
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

pub async fn restore(ask: Restore, watch: Watch) -> Result<RestoredBackup> {
    let into = ask.into.clone();
    let staging = blocking(move || {
        check_empty(&into)?;
        Staging::create(&into)
    })
    .await?;
    let layout = Layout::new(&staging.path);
    let chain = {
        let (file, layout) = (ask.file.clone(), layout.clone());
        blocking(move || -> Result<Chain> {
            let chain = Chain::open(&file)?;
            unpack(&chain, &options(&layout), &Files::Into(layout), &watch)?;
            Ok(chain)
        })
        .await?
    };
    failpoint::hit("in", "restore-backup");
    let opened = layout.clone();
    let store = blocking(move || SqliteStore::open(options(&opened))).await?;
    let store = Arc::new(store);
    let wanted = purges::wanted(&ask).await?;
    let purged = purges::apply(&*store, &layout, wanted).await?;
    let stopped = stopped::stop_all(&*store).await?;
    // Before the files are synced: closing moves the log into the database.
    blocking(move || drop(store)).await;
    blocking(move || finish(&ask, staging, &chain, (stopped, purged))).await
}

fn options(layout: &Layout) -> Options {
    Options::new(layout.home())
}

/// Gives the home its identity and its name.
fn finish(
    ask: &Restore,
    mut staging: Staging,
    chain: &Chain,
    (stopped, purged): (u64, u64),
) -> Result<RestoredBackup> {
    let last = chain.last()?;
    let layout = Layout::new(&staging.path);
    layout.make().map_err(Error::io(&ask.into))?;
    let identity = home::adopt_copy_of(&layout, last.manifest.home);
    let identity = identity.map_err(Error::io(&ask.into))?;
    let dir = File::open(&staging.path).map_err(Error::io(&ask.into))?;
    rustix::fs::syncfs(&dir).map_err(|error| Error::io(&ask.into)(error.into()))?;
    failpoint::hit("before", "restore-backup-rename");
    staging.become_home(&ask.into)?;
    Ok(RestoredBackup {
        home: ask.into.display().to_string(),
        home_id: identity.id.to_string(),
        copied_from: last.manifest.home.to_string(),
        file: last.path.display().to_string(),
        made_at: Timestamp::from_millis(last.manifest.made_at),
        chain: chain.names(),
        agents: last.manifest.agents,
        events: last.manifest.events,
        files: last.manifest.files.len() as u64,
        stopped,
        purged,
    })
}

/// A home with anything in it is left alone.
fn check_empty(home: &Path) -> Result<()> {
    let not_empty = || Error::HomeNotEmpty {
        home: home.to_owned(),
    };
    match fs::symlink_metadata(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(home)(error)),
        // A link cannot be replaced by a directory.
        Ok(about) if !about.is_dir() => return Err(not_empty()),
        Ok(_) => {}
    }
    match fs::read_dir(home).map_err(Error::io(home))?.next() {
        Some(_) => Err(not_empty()),
        None => Ok(()),
    }
}

/// The directory in which the home is built. It is deleted unless it became the home.
struct Staging {
    path: PathBuf,
    is_home: bool,
}

impl Staging {
    fn create(home: &Path) -> Result<Self> {
        let parent = home.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let path = parent.join(format!(".agentd-restore-{}", clock::new_id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::io(&path))?;
        Ok(Self {
            path,
            is_home: false,
        })
    }

    /// Fails if the directory is not empty by now.
    fn become_home(&mut self, home: &Path) -> Result<()> {
        fs::rename(&self.path, home).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                Error::HomeNotEmpty {
                    home: home.to_owned(),
                }
            }
            _ => Error::io(home)(error),
        })?;
        self.is_home = true;
        let parent = home.parent().unwrap_or(Path::new("/"));
        let synced = File::open(parent).and_then(|dir| dir.sync_all());
        synced.map_err(Error::io(parent))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_home {
            let _left = fs::remove_dir_all(&self.path);
        }
    }
}
