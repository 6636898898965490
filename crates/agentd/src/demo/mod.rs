//! `agentd demo`: kills an agent and its daemon at work, and shows that nothing is lost.
//!
//! It starts the real daemon with its own state directory, lets an agent work with the built-in model and real tools,
//! and kills both. Every claim with a ✓ was checked before it was printed. The first claim that does not hold ends the
//! demo.
//!
//! - [`story`]: the steps, in order. [`claims`]: the claims and their verdicts.
//! - [`daemon`]: the daemon and the agent, seen through the API. [`journal`]: the agent's journal.
//! - [`evidence`]: the checks, without IO. `line`: an event as one or more lines.

mod claims;
mod command;
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

/// The demo takes a few seconds; after this time it hangs.
const LONGEST: Duration = Duration::from_secs(90);
/// The longest path that a socket address can hold.
const SOCKET_PATH: usize = 107;

pub async fn run(out: &mut Output) -> Result<(), Error> {
    let dir = dir()?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::no_runtime)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(Error::no_runtime)?;
    let told = tokio::select! {
        told = tokio::time::timeout(LONGEST, story::tell(out, dir.path())) => told,
        // When the demo ends, the processes that it started end too.
        _ = terminate.recv() => return Err(Error::interrupted()),
        _ = hangup.recv() => return Err(Error::interrupted()),
    };
    let told = told.unwrap_or_else(|_| {
        let what = "the demo timed out";
        Err(Error::new(Exit::Failed, what))
    });
    match told {
        // The files are kept: they are needed to investigate the failure.
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
    let cannot = || Error::new(Exit::Unavailable, "the demo cannot create its directory");
    let dir = tempfile::Builder::new().prefix("agentd-demo-").tempdir();
    let dir = dir.map_err(|error| {
        cannot()
            .because(error)
            .next("set TMPDIR to a writable directory")
    })?;
    let longest = agentd_daemon::layout::Layout::new(daemon::home(dir.path())).link_socket();
    match fits(&longest) {
        true => Ok(dir),
        false => Err(cannot()
            .because("its path is too long for a socket")
            .next("set TMPDIR to a directory with a shorter path, such as /tmp")),
    }
}

fn fits(socket: &Path) -> bool {
    socket.as_os_str().len() <= SOCKET_PATH
}
