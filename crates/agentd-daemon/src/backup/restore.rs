//! Restores a backup into an empty home. The home is built elsewhere first (`staging`), so it exists completely or not at all. It
//! has an identity of its own, its agents are stopped, and what was purged after the backup is purged in it.

mod purges;
mod staging;
mod stopped;

use super::chain::Chain;
use super::unpack::{Files, unpack};
use super::{Error, Progress, Result, Step, Watch};
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
    // Work that blocks owns the directory until it ends: if the command is interrupted meanwhile, the directory is deleted
    // afterwards, and not under it.
    let opening = blocking(move || (SqliteStore::open(options(&opened)), unpacked));
    let (store, unpacked) = opening.await;
    let store = Arc::new(store?);
    check_wanted(&unpacked.chain, &watch, Step::More)?;
    let wanted = purges::wanted(&ask).await?;
    let purged = purges::apply(&*store, &layout, wanted).await?;
    check_wanted(&unpacked.chain, &watch, Step::More)?;
    let stopped = stopped::stop_all(&*store).await?;
    let closing = move || {
        // Before the files are synced: closing moves the log into the database.
        drop(store);
        unpacked
    };
    let unpacked = blocking(closing).await;
    check_wanted(&unpacked.chain, &watch, Step::More)?;
    blocking(move || finish(&ask, unpacked, (stopped, purged), &watch)).await
}

/// Fails if the command was interrupted.
fn check_wanted(chain: &Chain, watch: &Watch, step: Step) -> Result<()> {
    let bytes = chain.bytes();
    let of = Some(bytes);
    match watch(Progress { bytes, of, step }) {
        true => Ok(()),
        false => Err(Error::Cancelled),
    }
}

fn options(layout: &Layout) -> Options {
    Options::new(layout.home())
}

/// Gives the home its identity and its name.
fn finish(
    ask: &Restore,
    unpacked: Unpacked,
    (stopped, purged): (u64, u64),
    watch: &Watch,
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
    // The last time: the disk may have taken long, and from here on the restore completes.
    check_wanted(&chain, watch, Step::Last)?;
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

#[cfg(test)]
mod tests {
    use super::super::{Kind, Order, Replace, make};
    use super::*;
    use crate::supervisor::tests::bed;
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// A restore whose command is interrupted at one of the times at which it is asked.
    struct Cut {
        ended: Result<RestoredBackup>,
        /// How often the command was asked.
        asked: usize,
        /// Whether everything had been written by then.
        was_written: bool,
    }

    /// Restores into a new directory. The command is interrupted when it is asked for the time `nth`.
    async fn restore_until(nth: usize, file: &Path, home: &Path) -> Cut {
        fs::create_dir(home).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let was_written = Arc::new(AtomicBool::new(false));
        let identity = Layout::new(home)
            .unfinished_restore()
            .join("home/home.json");
        let (counted, seen) = (Arc::clone(&asked), Arc::clone(&was_written));
        let watch: Watch = Arc::new(move |_| {
            let is_last = counted.fetch_add(1, Ordering::Relaxed) + 1 == nth;
            if is_last {
                seen.store(identity.exists(), Ordering::Relaxed);
            }
            !is_last
        });
        let ask = Restore {
            file: file.to_owned(),
            into: home.to_owned(),
            old_home: None,
        };
        Cut {
            ended: restore(ask, watch).await,
            asked: asked.load(Ordering::Relaxed),
            was_written: was_written.load(Ordering::Relaxed),
        }
    }

    /// Regression: the command was last asked before the files were synced, which takes long. It said that it was interrupted,
    /// and the home was restored.
    #[tokio::test]
    async fn a_restore_that_is_interrupted_while_it_syncs_leaves_nothing() {
        let (bed, root) = (bed(), tempfile::tempdir().unwrap());
        bed.agent(None).await;
        let order = Order {
            to: root.path().join("x.backup"),
            kind: Kind::Full,
            replace: Replace::No,
        };
        let file = order.to.clone();
        let watch: Watch = Arc::new(|_| true);
        make(&bed.daemon, order, watch).await.unwrap();
        let whole = restore_until(0, &file, &root.path().join("whole")).await;
        assert_eq!(whole.ended.unwrap().agents, 1);
        for nth in 1..=whole.asked {
            let home = root.path().join(format!("cut-{nth}"));
            let cut = restore_until(nth, &file, &home).await;
            assert!(matches!(cut.ended, Err(Error::Cancelled)), "{nth}");
            assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "{nth}");
            assert_eq!(cut.was_written, nth == whole.asked, "{nth}");
        }
    }
}
