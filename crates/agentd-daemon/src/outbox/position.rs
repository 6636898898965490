//! The stored position of a destination, together with its fold of the events up to there.

use crate::daemon::Daemon;
use crate::durable_file;
use agentd_core::outbox::binding::Lifetime;
use agentd_core::outbox::routed::Routed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// How many events may be read again after a crash. None of them led to a message.
const UNSAVED: usize = 1000;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Content<P> {
    after: P,
    #[serde(default)]
    routed: Routed,
    /// Only for a binding.
    #[serde(default)]
    lifetime: Lifetime,
    /// The newest trouble of the daemon that was delivered.
    #[serde(default)]
    trouble: u64,
}

/// A position, and how it is stored.
#[derive(Clone, Debug)]
pub struct Position<P> {
    path: PathBuf,
    content: Content<P>,
    unsaved: usize,
}

fn path(daemon: &Daemon, destination: &str) -> PathBuf {
    let dir = daemon.layout.outbox();
    dir.join(format!("{destination}.json"))
}

/// Removes the position of a destination that no longer exists.
pub fn forget(daemon: &Daemon, destination: &str) {
    if let Err(error) = durable_file::remove(&path(daemon, destination)) {
        tracing::warn!(destination, %error, "position of a destination not removed");
    }
}

impl<P: Clone + Serialize + DeserializeOwned + Sync> Position<P> {
    /// The stored position; none if there is none yet.
    pub fn read(daemon: &Daemon, destination: &str) -> io::Result<Option<Self>> {
        let path = path(daemon, destination);
        let content = durable_file::read(&path).map_err(|error| {
            let why = format!("its position {} cannot be read: {error}", path.display());
            io::Error::new(error.kind(), why)
        })?;
        Ok(content.map(|content| Self {
            path,
            content,
            unsaved: 0,
        }))
    }

    /// The position of a new destination. It is not stored yet.
    pub fn new(daemon: &Daemon, destination: &str, after: P, trouble: u64) -> Self {
        Self {
            path: path(daemon, destination),
            content: Content {
                after,
                routed: Routed::default(),
                lifetime: Lifetime::default(),
                trouble,
            },
            unsaved: 0,
        }
    }

    pub const fn after(&self) -> &P {
        &self.content.after
    }

    /// Folds events: the caller moves on after each of them.
    pub const fn routed(&mut self) -> &mut Routed {
        &mut self.content.routed
    }

    /// Folds events of a binding's agent: the caller moves on after each of them.
    pub const fn fold(&mut self) -> (&mut Routed, &mut Lifetime) {
        (&mut self.content.routed, &mut self.content.lifetime)
    }

    /// What was folded up to here.
    pub const fn folded(&self) -> (&Routed, &Lifetime) {
        (&self.content.routed, &self.content.lifetime)
    }

    pub const fn trouble(&self) -> u64 {
        self.content.trouble
    }

    /// Moves on after an event that led to no message. It is stored from time to time.
    pub async fn pass(&mut self, daemon: &Daemon, after: P) -> io::Result<()> {
        self.content.after = after;
        self.unsaved += 1;
        match self.unsaved < UNSAVED {
            true => Ok(()),
            false => self.save(daemon).await,
        }
    }

    /// Moves on after an event whose message was accepted. It is on disk when this returns.
    pub async fn delivered(&mut self, daemon: &Daemon, after: P) -> io::Result<()> {
        self.content.after = after;
        self.save(daemon).await
    }

    /// Moves on after a trouble of the daemon.
    pub async fn trouble_delivered(&mut self, daemon: &Daemon, number: u64) -> io::Result<()> {
        self.content.trouble = number;
        self.save(daemon).await
    }

    pub async fn save(&mut self, daemon: &Daemon) -> io::Result<()> {
        durable_file::write(&daemon.layout, &self.path, &self.content).await?;
        self.unsaved = 0;
        Ok(())
    }
}
