//! Starting a task: its shim is, and gets the order.

use super::order::Order;
use super::task_dir::TaskDir;
use super::{Task, wait};
use crate::children;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::identity::Identity;
use crate::shim::ARGUMENT;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

/// What to run as a shim: something that calls [`run_if_asked`](crate::shim::run_if_asked). The
/// task's directory is added as the last argument.
#[derive(Clone, Debug)]
pub struct ShimProgram {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl Default for ShimProgram {
    /// The program that runs now, even if the file it came from has been replaced.
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            args: vec![OsString::from(ARGUMENT)],
        }
    }
}

/// Starts a shim in a task's directory and hands it the order. Does not wait for what comes of it.
///
/// The shim inherits nothing, and outlives us. It is reaped if it ends before we do; that needs a
/// tokio runtime with IO. After an error, or when this is let go of half way, nothing has been
/// started or will be.
pub async fn start(shim: &ShimProgram, dir: &Path, order: &Order) -> Result<Task> {
    order.check()?;
    let order = serde_json::to_vec(order).map_err(|error| Error::BadOrder {
        why: error.to_string(),
    })?;
    let task_dir = TaskDir::make(dir)?;
    let (theirs, ours) = io::pipe().map_err(no_pipe)?;
    let mut ours = Sender::from_owned_fd(OwnedFd::from(ours)).map_err(no_pipe)?;
    let identity = spawn(shim, &task_dir, theirs)?;
    wait::reap(identity)?;
    // Without its end the order is not whole, and the shim does nothing with it.
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

/// Not as [`Start`](crate::Start) does it: it would lead a group, and so could not make a session.
fn spawn(shim: &ShimProgram, task_dir: &TaskDir, stdin: io::PipeReader) -> Result<Identity> {
    let mut command = Command::new(&shim.program);
    command
        .args(&shim.args)
        .arg(task_dir.path())
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = children::spawn(&mut command).map_err(|source| Error::CannotStart {
        program: shim.program.clone(),
        source,
    })?;
    // Even if it has ended by now it is still there: nobody but us can reap it.
    Identity::of(child.id()).inspect_err(|_| {
        // It never gets its order, and is not left as a zombie.
        drop(child.kill());
        drop(children::on_exit(child.id(), || child.wait()));
    })
}

fn no_pipe(source: io::Error) -> Error {
    Error::CannotSetUp {
        what: "cannot make a pipe for the order",
        source,
    }
}
