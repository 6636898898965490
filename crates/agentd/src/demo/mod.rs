//! `agentd demo`: a true story, told while it happens.
//!
//! It starts the very daemon that a user has, with a directory of its own, lets an agent work with the
//! model that is built in and real tools, and kills both. Everything it prints with a ✓ was looked up
//! first, and the first thing that is not so ends it.
//!
//! - [`story`]: the steps, in order. [`claims`]: what is said, and whether it held.
//! - [`demo`]: the daemon and the agent, seen from outside. [`journal`]: what is on record.
//! - [`evidence`]: the checks themselves, pure. `line`: an event in a line or a few.

mod claims;
mod daemon;
mod evidence;
mod journal;
mod line;
mod story;

use crate::error::{Error, Exit};
use crate::output::Output;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// It takes a few seconds; past this something hangs.
const LONGEST: Duration = Duration::from_secs(90);
/// What the address of a socket holds.
const SOCKET_PATH: usize = 107;

pub async fn run(out: &mut Output) -> Result<(), Error> {
    let dir = dir()?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::no_runtime)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(Error::no_runtime)?;
    let told = tokio::select! {
        told = tokio::time::timeout(LONGEST, story::tell(out, dir.path())) => told,
        // Whatever ends us, what we started ends with us.
        _ = terminate.recv() => return Err(Error::interrupted()),
        _ = hangup.recv() => return Err(Error::interrupted()),
    };
    let told = told.unwrap_or_else(|_| {
        let what = "the demo does not come to its end";
        Err(Error::new(Exit::Failed, what))
    });
    match told {
        // Evidence: whoever looks into it needs the files.
        Err(error) if error.is_failure() => {
            let kept = dir.keep();
            let next = format!(
                "please report it; the demo's files are in {}",
                kept.display()
            );
            Err(error.next(next))
        }
        ended => ended,
    }
}

fn dir() -> Result<TempDir, Error> {
    let cannot = || Error::new(Exit::Unavailable, "the demo has no directory to work in");
    let dir = tempfile::Builder::new().prefix("agentd-demo-").tempdir();
    let dir = dir.map_err(|error| {
        cannot()
            .because(error)
            .next("set TMPDIR to a directory that can be written to")
    })?;
    let longest = agentd_daemon::layout::Layout::new(daemon::home(dir.path())).link_socket();
    match fits(&longest) {
        true => Ok(dir),
        false => Err(cannot()
            .because("its path is too long for a socket")
            .next("set TMPDIR to a directory with a shorter path, /tmp for one")),
    }
}

fn fits(socket: &Path) -> bool {
    socket.as_os_str().len() <= SOCKET_PATH
}
