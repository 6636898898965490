//! The daemon: it owns the store, looks after the agents' processes, and answers over a socket.
//!
//! It may **not** decide what core can decide.

use std::path::PathBuf;

/// How a daemon is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub home: PathBuf,
}

/// Why a daemon did not run, or ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another daemon runs in {0}")]
    Taken(PathBuf),
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
}

/// Runs a daemon until it is told to stop.
pub async fn run(settings: Settings) -> Result<(), Error> {
    let what = format!("{} has no daemon yet", settings.home.display());
    let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
    Err(Error::Io { what, source })
}
