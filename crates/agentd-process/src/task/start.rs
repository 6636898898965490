//! Starting a task: starting its shim and sending it the order.

use super::order::Order;
use super::task_dir::TaskDir;
use super::{Task, wait};
use crate::children;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::shim_protocol::ARGUMENT;
use agentd_failpoint as failpoint;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

/// What `ps` shows as the name of the program.
const NAME: &str = "agentd shim";

/// The program to run as a shim; it must call [`run_if_asked`](crate::shim::run_if_asked). The task's directory is
/// added as the last argument.
#[derive(Clone, Debug)]
pub struct ShimProgram {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl Default for ShimProgram {
    /// The running program, even if its file has been replaced.
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            args: vec![OsString::from(ARGUMENT)],
        }
    }
}

/// Starts a shim in a task's directory and sends it the order. Does not wait for the result.
///
/// The shim inherits nothing and outlives this process. It is reaped if it ends first; that needs a tokio runtime with
/// IO. After an error, or if this future is dropped halfway, the task has not been started and never will be.
pub async fn start(shim: &ShimProgram, dir: &Path, order: &Order) -> Result<Task> {
    start_with(shim, dir, order, [Stdio::null(), Stdio::null()]).await
}

/// The same, with these streams as the stdout and stderr of the shim.
pub(super) async fn start_with(
    shim: &ShimProgram,
    dir: &Path,
    order: &Order,
    streams: [Stdio; 2],
) -> Result<Task> {
    order.check()?;
    let order = &with_private_paths(order);
    let order = serde_json::to_vec(order).map_err(|error| Error::BadOrder {
        why: error.to_string(),
    })?;
    let task_dir = TaskDir::make(dir)?;
    let (theirs, ours) = io::pipe().map_err(no_pipe)?;
    let mut ours = Sender::from_owned_fd(OwnedFd::from(ours)).map_err(no_pipe)?;
    let (child, identity) = spawn(shim, &task_dir, theirs, streams)?;
    if let Err(error) = wait::reap(identity) {
        // It never gets its order.
        children::end(child);
        return Err(error);
    }
    // Without its end the order is incomplete, and the shim ignores it.
    let handed = ours.write_all(&order).await;
    drop(ours);
    failpoint::hit("after", "hand");
    match handed {
        Ok(()) => Ok(Task::new(task_dir, identity)),
        Err(source) => Err(Error::CannotHand {
            shim: identity,
            source,
        }),
    }
}

/// This process remembers what root's sandboxes hide; a shim would have to search for it.
fn with_private_paths(order: &Order) -> Order {
    let mut order = order.clone();
    if let Some(confined) = &mut order.confined
        && confined.policy.private.is_none()
    {
        confined.policy.private = agentd_sandbox::private_paths();
    }
    order
}

/// Does not use [`Start`](crate::Start), which makes a program a group leader: a group leader cannot create a session.
fn spawn(
    shim: &ShimProgram,
    task_dir: &TaskDir,
    stdin: io::PipeReader,
    [stdout, stderr]: [Stdio; 2],
) -> Result<(Child, Identity)> {
    let mut command = Command::new(&shim.program);
    command
        .arg0(NAME)
        .args(&shim.args)
        .arg(task_dir.path())
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    let child = children::spawn(&mut command).map_err(|source| Error::CannotStart {
        program: shim.program.clone(),
        source,
    })?;
    // Even if it has ended, its pid is still valid: only this process can reap it.
    match Identity::of(child.id()) {
        Ok(identity) => Ok((child, identity)),
        Err(error) => {
            // It never gets its order.
            children::end(child);
            Err(error)
        }
    }
}

pub(super) fn no_pipe(source: io::Error) -> Error {
    Error::CannotSetUp {
        what: "cannot create a pipe to the shim",
        source,
    }
}
