//! Attached tasks: a program whose stdin and stdout this process uses. It ends with this process.

use super::order::Order;
use super::start::{no_pipe, start_with};
use super::{ShimProgram, Task};
use crate::error::Result;
use crate::identity::Identity;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A program that runs for this process.
#[derive(Debug)]
pub struct Attached {
    pub task: Task,
    /// Dropping it closes the program's stdin.
    pub stdin: Sender,
    pub stdout: Receiver,
}

/// Starts an attached task. Its shim ends the whole tree when this process is gone, however that happens. The program may
/// not have started when this returns: if it cannot be, its stdout ends, and the exit file says why. Needs a tokio
/// runtime with IO.
pub async fn start_attached(shim: &ShimProgram, dir: &Path, order: Order) -> Result<Attached> {
    let order = Order {
        owner: Some(Identity::current()?),
        stdin: None,
        ..order
    };
    let (to_read, to_write) = io::pipe().map_err(no_pipe)?;
    let (read, write) = io::pipe().map_err(no_pipe)?;
    let stdin = Sender::from_owned_fd(OwnedFd::from(to_write)).map_err(no_pipe)?;
    let stdout = Receiver::from_owned_fd(OwnedFd::from(read)).map_err(no_pipe)?;
    // The shim passes its stdout on as the program's stdout, and its stderr as the program's stdin.
    let streams = [Stdio::from(write), Stdio::from(to_read)];
    let task = start_with(shim, dir, &order, streams).await?;
    Ok(Attached {
        task,
        stdin,
        stdout,
    })
}
