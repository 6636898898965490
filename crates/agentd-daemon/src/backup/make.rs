//! Makes a backup of a home that is in use.
//!
//! The file is written under a temporary name in the same directory, synced, and renamed. Whenever this process ends, an
//! earlier backup is as it was, and a partial one has no name that a restore would accept.

mod destination;
mod files;

pub use destination::NAME;

use super::archive::{Archive, ArchiveWriter, Manifest, Parent, Record, Stored, Written};
use super::chain;
use super::{Error, Progress, Result, Step, Watch};
use crate::clock;
use crate::daemon::Daemon;
use crate::purge_log::{self, Remembered};
use crate::spawn::blocking;
use agentd_client::api;
use agentd_failpoint as failpoint;
use agentd_store::{BackedUp, BackupSink};
use destination::{Destination, Partial};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// A file, or a directory in which the backup gets a name of its own. An absolute path.
    pub to: PathBuf,
    pub kind: Kind,
    pub replace: Replace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Full,
    /// Only what the newest backup of this home in the same directory does not have.
    Incremental,
}

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    No,
    Yes,
}

/// Makes a backup, and returns when it is durable. One at a time.
pub async fn make(daemon: &Arc<Daemon>, order: Order, watch: Watch) -> Result<api::Backup> {
    let _only = daemon.backing_up.try_lock().map_err(|_| Error::Busy)?;
    failpoint::hit("before", "backup");
    let now = clock::now();
    let home = daemon.home.identity.id;
    let destination = {
        let (order, millis) = (order.clone(), now.as_millis());
        blocking(move || Destination::of(&order, millis)).await?
    };
    let (parent, why_full) = match order.kind {
        Kind::Full => (None, None),
        Kind::Incremental => {
            let destination = destination.clone();
            match blocking(move || find_parent(&destination, home)).await {
                Ok(parent) => (Some(parent), None),
                Err(why) => (None, Some(why)),
            }
        }
    };
    let partial = Arc::new(Partial::create(&destination, home)?);
    let job = Job {
        daemon: Arc::clone(daemon),
        destination,
        partial,
        watch,
    };
    let made = match job.run(parent, now.as_millis()).await {
        // Repaired or migrated since: this one begins a new chain.
        Err(Error::Store(agentd_store::Error::OtherJournal)) => {
            let why = agentd_store::Error::OtherJournal.to_string();
            let made = job.run(None, now.as_millis()).await?;
            (made, Some(why))
        }
        made => (made?, why_full),
    };
    let (mut made, why_full) = made;
    made.why_full = why_full;
    tracing::info!(file = %made.file, bytes = made.bytes, "backup made");
    Ok(made)
}

/// The newest backup of this home in the directory, if it is intact and those that it needs are there; otherwise why there is
/// none: a backup that continues a chain with a missing link could not be restored.
fn find_parent(destination: &Destination, home: Uuid) -> std::result::Result<Archive, String> {
    let all = chain::all_in(&destination.dir).map_err(|error| error.to_string())?;
    let newest = all.into_iter().find(|found| found.home == home);
    let newest = newest.ok_or("the directory has no earlier backup of this home")?;
    let checked = Archive::open(&newest.path).and_then(|archive| {
        archive.check()?;
        let needed = chain::needed_by(&archive)?;
        Ok((archive, needed))
    });
    let (parent, needed) = checked.map_err(|error| error.to_string())?;
    let is_replaced = |link: &Archive| link.path == destination.file;
    if is_replaced(&parent) || needed.iter().any(is_replaced) {
        return Err("an incremental backup cannot replace a backup that it needs".to_owned());
    }
    Ok(parent)
}

/// A backup that is being made.
struct Job {
    daemon: Arc<Daemon>,
    destination: Destination,
    partial: Arc<Partial>,
    watch: Watch,
}

impl Job {
    async fn run(&self, parent: Option<Archive>, made_at: i64) -> Result<api::Backup> {
        let (partial, layout) = (Arc::clone(&self.partial), self.daemon.layout.clone());
        let is_full = parent.is_none();
        let opened = blocking(move || -> Result<_> {
            Ok((partial.open()?, is_full.then(|| files::total(&layout))))
        });
        let (file, of) = opened.await?;
        let writer = ArchiveWriter::begin(file).map_err(Error::io(&self.destination.file))?;
        let sink = Sink {
            writer: Arc::new(Mutex::new(Some(writer))),
            watch: Arc::clone(&self.watch),
            daemon: Arc::clone(&self.daemon),
            of,
        };
        let since = parent
            .as_ref()
            .map(|parent| parent.manifest.journal.clone());
        let backed_up = self
            .daemon
            .store
            .back_up(Box::new(sink.clone()), since)
            .await
            .map_err(|error| cancelled_or(error, &self.destination))?;
        failpoint::hit("in", "backup");
        self.complete(sink, parent, backed_up, made_at).await
    }

    /// Adds the files and the manifest, and gives the backup its name.
    async fn complete(
        &self,
        sink: Sink,
        parent: Option<Archive>,
        backed_up: BackedUp,
        made_at: i64,
    ) -> Result<api::Backup> {
        let (layout, home) = (self.daemon.layout.clone(), self.daemon.home.identity.id);
        let destination = self.destination.clone();
        let mut manifest = Manifest::new(home, made_at, backed_up.mark);
        manifest.agentd = env!("CARGO_PKG_VERSION").to_owned();
        (manifest.agents, manifest.events) = (backed_up.agents, backed_up.events);
        manifest.parent = parent.as_ref().map(|parent| Parent {
            digest: parent.digest.clone(),
            file: parent
                .path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        });
        let complete = blocking(move || -> Result<_> {
            let known = parent.map(|parent| parent.manifest.files);
            manifest.files = files::write(&layout, known.unwrap_or_default(), &sink, &destination)?;
            let taken = {
                let mut writer = sink.writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.take().ok_or(Error::Cancelled)?
            };
            let written = taken
                .finish(&manifest)
                .map_err(Error::io(&destination.file))?;
            Ok((written, manifest))
        });
        let (written, manifest) = complete.await?;
        let made = describe(&self.destination, &written, &manifest);
        self.place(written).await?;
        Ok(made)
    }

    /// Gives the backup its name.
    async fn place(&self, written: Written) -> Result<()> {
        let (layout, dir) = (&self.daemon.layout, &self.destination.dir);
        // Before the backup has its name: a purge that follows must reach the list beside it, also if this process dies.
        let remembered = purge_log::remember(layout, dir).await;
        let remembered = remembered.map_err(Error::io(layout.backups()))?;
        failpoint::hit("after", "backup-directory");
        let placed = match self.list_purges().await {
            Ok(()) => self.rename(written).await,
            Err(error) => Err(error),
        };
        // It may have its name although the directory could not be synced.
        let file = self.destination.file.clone();
        let is_there = placed.is_ok() || blocking(move || file.exists()).await;
        if remembered == Remembered::Now
            && !is_there
            && let Err(error) = purge_log::forget(layout, dir).await
        {
            tracing::warn!(%error, "directory without a backup is still recorded");
        }
        placed
    }

    /// Writes the list beside the backup before it has its name: a conversation that was purged while the backup was made is in
    /// the backup, and no purge has reached the list of a directory that was not recorded.
    async fn list_purges(&self) -> Result<()> {
        let (dir, home) = (&self.destination.dir, self.daemon.home.identity.id);
        let listed = purge_log::write(&*self.daemon.store, dir, home).await;
        listed.map_err(Error::io(purge_log::file(dir, home)))
    }

    async fn rename(&self, written: Written) -> Result<()> {
        let (destination, partial) = (self.destination.clone(), Arc::clone(&self.partial));
        blocking(move || -> Result<()> {
            failpoint::hit("before", "backup-sync");
            partial.place(&written.file, &destination)?;
            failpoint::hit("after", "backup");
            Ok(())
        })
        .await
    }
}

fn describe(destination: &Destination, written: &Written, manifest: &Manifest) -> api::Backup {
    let stored = manifest
        .files
        .iter()
        .filter(|file| file.stored == Stored::Here);
    api::Backup {
        file: destination.file.display().to_string(),
        digest: written.digest.clone(),
        bytes: written.bytes,
        made_at: agentd_core::time::Timestamp::from_millis(manifest.made_at),
        home_id: manifest.home.to_string(),
        incremental: manifest.parent.is_some(),
        parent: manifest.parent.as_ref().map(|parent| parent.file.clone()),
        why_full: None,
        agents: manifest.agents,
        events: manifest.events,
        files: manifest.files.len() as u64,
        files_stored: stored.count() as u64,
    }
}

fn cancelled_or(error: agentd_store::Error, destination: &Destination) -> Error {
    match error {
        agentd_store::Error::BackupIo(error) if error.kind() == io::ErrorKind::Interrupted => {
            Error::Cancelled
        }
        agentd_store::Error::BackupIo(error) => Error::io(&destination.file)(error),
        error => Error::Store(error),
    }
}

/// Where the store and the files are written to. Shared, because the store takes ownership of its sink.
#[derive(Clone)]
struct Sink {
    /// None when it is complete.
    writer: Arc<Mutex<Option<ArchiveWriter>>>,
    watch: Watch,
    daemon: Arc<Daemon>,
    of: Option<u64>,
}

impl Sink {
    fn record(&self, record: &Record) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut() else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        writer.record(record)?;
        let progress = Progress {
            bytes: writer.taken(),
            of: self.of.map(|of| of.max(writer.taken())),
            step: Step::More,
        };
        // A client that is gone, or a daemon that ends, has no use for it.
        match (self.watch)(progress) && !self.daemon.is_ending() {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

impl BackupSink for Sink {
    fn part(&mut self, part: &[u8]) -> io::Result<()> {
        self.record(&Record::Journal(part.to_vec()))?;
        failpoint::hit("after", "backup-part");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::archive::archive;
    use crate::lifecycle::ops::Asked;
    use crate::lifecycle::purge::purge;
    use crate::supervisor::tests::bed;
    use agentd_core::event::OpVerb;
    use std::fs;

    /// Regression: the backup was reported as made. A restore of it brought back what was purged while it was made.
    #[tokio::test]
    async fn a_backup_has_no_name_without_its_list_of_purges() {
        let (bed, dir) = (bed(), tempfile::tempdir().unwrap());
        let daemon = &bed.daemon;
        let handle = bed.agent(None).await;
        let ask = api::Archive::default();
        archive(&handle, ask, &Asked::by_daemon(OpVerb::Archive))
            .await
            .unwrap();
        let ask = api::Purge::default();
        purge(&handle, ask, &Asked::by_daemon(OpVerb::Purge))
            .await
            .unwrap();
        // A file cannot replace a directory.
        let list = purge_log::file(dir.path(), daemon.home.identity.id);
        fs::create_dir(&list).unwrap();
        let order = Order {
            to: dir.path().join("x.backup"),
            kind: Kind::Full,
            replace: Replace::No,
        };
        let watch: Watch = Arc::new(|_| true);
        let refused = make(daemon, order.clone(), Arc::clone(&watch)).await;
        assert!(matches!(refused, Err(Error::Io { path, .. }) if path == list));
        assert!(!order.to.exists());
        fs::remove_dir(&list).unwrap();
        make(daemon, order.clone(), watch).await.unwrap();
        assert!(order.to.exists());
        let listed = fs::read_to_string(&list).unwrap();
        assert!(listed.contains(&handle.id.to_string()), "{listed}");
    }
}
