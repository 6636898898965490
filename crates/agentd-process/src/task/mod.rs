//! Tasks: process trees that outlive the process that started them, each under a [`shim`](crate::shim).
//!
//! All state of a task is in its directory, which the caller chooses:
//!
//! - `claim`: the process that wins it decides whether the task runs. The shim keeps it locked while it lives.
//! - `running`: the identities of the shim and the program.
//! - `output`: what the task wrote to stdout and stderr, as it arrived. If [`Order::errors_apart`] is set, only stdout;
//!   stderr is then in `errors`.
//! - `exit`: how it ended. A task has ended only if this file exists.
//!
//! An attached task ([`start_attached`]) is the exception: it ends with its owner, to which its stdin and stdout are
//! connected.

mod attached;
mod claim;
mod find;
mod order;
mod record;
mod remove;
mod start;
mod sweep;
mod task_dir;
mod wait;

pub use attached::{Attached, start_attached};
pub use find::{Found, find, find_ended, is_left, withdraw};
pub use order::{Confined, Limits, Order};
pub use record::Exit;
pub use remove::{remove, remove_rest};
pub use start::{ShimProgram, start};
pub use wait::ended;

pub(crate) use claim::{By, take};
pub(crate) use find::is_shim_of;
pub(crate) use record::Running;
pub(crate) use task_dir::{TaskDir, cannot, create, write, write_for_good};

use crate::error::Result;
use crate::identity::Identity;
use crate::shim_protocol::{KILL, STOP};
use crate::signal::{Delivery, signal};
use agentd_files::own;
use std::path::{Path, PathBuf};

/// Whether the process is the init of a sandbox: it has more than one pid namespace, and is PID 1 of the innermost.
fn is_init(process: Identity) -> bool {
    let status = own::read_to_string(format!("/proc/{}/status", process.pid));
    let status = status.unwrap_or_default();
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let pids: Vec<&str> = pids.unwrap_or_default().split_whitespace().collect();
    pids.len() > 1 && pids.last() == Some(&"1")
}

/// A task whose shim is running, or was when this value was created. Dropping it does not end the task.
#[derive(Clone, Debug)]
pub struct Task {
    task_dir: TaskDir,
    shim: Identity,
}

impl Task {
    const fn new(task_dir: TaskDir, shim: Identity) -> Self {
        Self { task_dir, shim }
    }

    /// Sends SIGTERM to all its processes, and SIGKILL after the order's grace period. A second call kills them at
    /// once. Does not wait: see [`Task::ended`].
    pub fn stop(&self) -> Result<Delivery> {
        signal(self.shim, STOP)
    }

    /// Kills all its processes. Does not wait: see [`Task::ended`].
    pub fn kill(&self) -> Result<Delivery> {
        signal(self.shim, KILL)
    }

    /// Sends SIGINT to the process group of its program, as a terminal does for Ctrl-C. `Gone` if the program has not
    /// started or has ended.
    pub fn interrupt(&self) -> Result<Delivery> {
        let running = task_dir::read::<Running>(&self.task_dir.running())?;
        let leader = running.filter(|it| it.shim == self.shim);
        let Some(leader) = leader.and_then(|running| running.leader) else {
            return Ok(Delivery::Gone);
        };
        let program = match crate::tree::first_child(leader)? {
            // The leader is the init of a sandbox, which leads no group of the program.
            Some(program) if is_init(leader) => program,
            _ => leader,
        };
        crate::signal::signal_group(program, crate::signal::Signal::INT)
    }

    /// Waits until it has ended: never returns [`Found::Running`]. The caller need not be its parent. Needs a tokio
    /// runtime with IO.
    pub async fn ended(&self) -> Result<Found> {
        let mut shim = self.shim;
        loop {
            wait::ended(shim).await?;
            // Not on a separate thread: starting one can fail when a task uses up all resources. This blocks only if
            // the shim was killed, until the processes that it left have ended.
            match find(self.task_dir.path(), None)? {
                // Another shim had won the claim before this one.
                Found::Running(task) => shim = task.shim,
                found => return Ok(found),
            }
        }
    }

    pub fn dir(&self) -> &Path {
        self.task_dir.path()
    }

    /// The path of its output; the file does not exist before the task starts.
    pub fn output_path(&self) -> PathBuf {
        self.task_dir.output()
    }

    /// The path of its stderr, if that is kept separately.
    pub fn errors_path(&self) -> PathBuf {
        self.task_dir.errors()
    }

    pub const fn shim(&self) -> Identity {
        self.shim
    }
}
