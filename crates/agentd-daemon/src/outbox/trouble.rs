//! What happened to the daemon itself, which is in no agent's journal. A short numbered list in a file; each destination
//! stores the number of the newest one that it was told of.

use crate::clock;
use crate::daemon::Daemon;
use crate::durable_file;
use crate::layout::RUNNING_MARK;
use agentd_core::time::Timestamp;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// How many are kept.
const KEPT: usize = 50;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Content {
    troubles: Vec<Trouble>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// 1, 2, 3…
    pub number: u64,
    pub at: Timestamp,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The daemon before this one was killed, crashed, or the machine lost power.
    DaemonDied,
    /// A backup that the daemon makes by itself failed, after one that did not.
    BackupFailed,
    /// The retention policy was not applied, because the clock may be wrong.
    RetentionSkipped,
}

impl What {
    pub const fn text(self) -> &'static str {
        match self {
            Self::DaemonDied => "the daemon ended unexpectedly and was started again",
            Self::BackupFailed => "a scheduled backup failed; the daemon's log says why",
            Self::RetentionSkipped => {
                "the retention policy was not applied, because the clock may be wrong; the daemon's log says why"
            }
        }
    }
}

fn list(daemon: &Daemon) -> PathBuf {
    daemon.layout.outbox().join("trouble.list.json")
}

fn read(daemon: &Daemon) -> Content {
    let read = durable_file::read(&list(daemon));
    let read = read.inspect_err(|error| tracing::warn!(%error, "list of troubles not read"));
    read.ok().flatten().unwrap_or_default()
}

/// Records that the daemon before this one died, if it did.
pub async fn begin(daemon: &Daemon) {
    let mark = daemon.layout.running_mark();
    if mark.exists() {
        add(daemon, What::DaemonDied).await;
    }
    let written = durable_file::write(&daemon.layout, &mark, &std::process::id()).await;
    match written.and_then(|()| File::open(daemon.layout.outbox())) {
        Ok(dir) => drop(daemon.running_mark.set(dir)),
        Err(error) => tracing::warn!(%error, "mark of a running daemon not written"),
    }
}

/// Adds a trouble to the list, and wakes the destinations. Without destinations there is no list.
pub async fn add(daemon: &Daemon, what: What) {
    if daemon.is_read_only() || daemon.notify.destinations().next().is_none() {
        return;
    }
    let _alone = daemon.deliveries.trouble_file.lock().await;
    let mut content = read(daemon);
    let number = newest(&content) + 1;
    content.troubles.push(Trouble {
        number,
        at: clock::now(),
        what,
    });
    let old = content.troubles.len().saturating_sub(KEPT);
    content.troubles.drain(..old);
    let written = durable_file::write(&daemon.layout, &list(daemon), &content).await;
    match written {
        Ok(()) => daemon.deliveries.troubles.send_modify(|count| *count += 1),
        Err(error) => tracing::warn!(%error, "trouble not recorded"),
    }
}

/// No destination is told of a daemon that died.
pub fn forget(daemon: &Daemon) {
    if let Err(error) = durable_file::remove(&daemon.layout.running_mark()) {
        tracing::warn!(%error, "mark of a running daemon not removed");
    }
}

/// Removes the mark of this daemon, wherever its home is now.
pub fn end(daemon: &Daemon) {
    let Some(dir) = daemon.running_mark.get() else {
        return;
    };
    match unlinkat(dir, RUNNING_MARK, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => tracing::warn!(%error, "mark of a running daemon not removed"),
    }
}

fn newest(content: &Content) -> u64 {
    content.troubles.last().map_or(0, |trouble| trouble.number)
}

/// The number of the newest one; 0 if there is none.
pub fn last(daemon: &Daemon) -> u64 {
    newest(&read(daemon))
}

/// Those after a number, the oldest first.
pub fn after(daemon: &Daemon, number: u64) -> Vec<Trouble> {
    let troubles = read(daemon).troubles.into_iter();
    troubles.filter(|trouble| trouble.number > number).collect()
}
