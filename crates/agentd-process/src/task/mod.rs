//! Tasks: process trees that outlive whoever had them started, each under a [`shim`](crate::shim).
//!
//! All that is known about a task is in its directory, which the caller chooses:
//!
//! - `claim`: whoever wins it decides whether the task runs. The shim holds it locked for its life.
//! - `running`: who the shim and the program are.
//! - `output`: what the task wrote, both streams in the order of arrival; or one of them, and `errors` the
//!   other, where the order says so.
//! - `exit`: how it ended. Only where this is there it has.

mod claim;
mod find;
mod order;
mod record;
mod start;
mod sweep;
mod task_dir;
mod wait;

pub use find::{Found, find, find_ended, withdraw};
pub use order::{Confined, Limits, Order};
pub use record::Exit;
pub use start::{ShimProgram, start};
pub use wait::ended;

pub(crate) use claim::{By, take};
pub(crate) use find::is_shim_of;
pub(crate) use record::Running;
pub(crate) use task_dir::{TaskDir, cannot, create, write, write_for_good};

use crate::error::Result;
use crate::identity::Identity;
use crate::shim::{KILL, STOP};
use crate::signal::{Delivery, signal};
use std::path::{Path, PathBuf};

/// A task with a shim that runs, or did when this was made. Let go of, it runs on.
#[derive(Clone, Debug)]
pub struct Task {
    task_dir: TaskDir,
    shim: Identity,
}

impl Task {
    const fn new(task_dir: TaskDir, shim: Identity) -> Self {
        Self { task_dir, shim }
    }

    /// Asks everything that it started to end, and kills it after the order's grace. Asked once more,
    /// it is killed at once. Does not wait for that: see [`Task::ended`].
    pub fn stop(&self) -> Result<Delivery> {
        signal(self.shim, STOP)
    }

    /// Kills everything that it started. Does not wait for that: see [`Task::ended`].
    pub fn kill(&self) -> Result<Delivery> {
        signal(self.shim, KILL)
    }

    /// Waits until it is over: never [`Found::Running`]. Works for any process, whoever started it;
    /// needs a tokio runtime with IO.
    pub async fn ended(&self) -> Result<Found> {
        let mut shim = self.shim;
        loop {
            wait::ended(shim).await?;
            // Not in a thread of its own: to start one can fail, just when a task has run wild. It
            // blocks for a moment only if the shim was killed.
            match find(self.task_dir.path(), None)? {
                // Another shim had the claim before this one.
                Found::Running(task) => shim = task.shim,
                found => return Ok(found),
            }
        }
    }

    pub fn dir(&self) -> &Path {
        self.task_dir.path()
    }

    /// Where its output is; nothing is there before it is started.
    pub fn output_path(&self) -> PathBuf {
        self.task_dir.output()
    }

    /// Where its standard error is, if that is kept apart.
    pub fn errors_path(&self) -> PathBuf {
        self.task_dir.errors()
    }

    pub const fn shim(&self) -> Identity {
        self.shim
    }
}
