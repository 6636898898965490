//! The way to the daemon. Where none listens, one is started.

use crate::error::Error;
use crate::home;
use crate::starter::{Starter, cannot_use};
use agentd_client::Client;
use agentd_daemon::layout::Layout;
use agentd_process::{Child, failpoint};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub struct Connection {
    /// What it asks is asked again where the daemon goes away before it has answered.
    pub client: Client,
    starter: Arc<Starter>,
    /// When the first of the streams in a row broke that brought nothing.
    failing_since: Option<Instant>,
}

/// For one question; starts a daemon where none listens.
pub async fn client() -> Result<Client, Error> {
    Ok(Connection::open().await?.client)
}

/// For whoever does not want one to be started.
pub fn client_of_any() -> Result<Client, Error> {
    Ok(client_at(&home::folder()?))
}

pub fn client_at(home: &Path) -> Client {
    let points = failpoint::folder().map(|_| failpoint::hit_of as agentd_client::Points);
    Client::new(socket(home))
        .with_points(points)
        .with_any_daemon(failpoint::mutant("owner_unchecked"))
}

/// The daemon's socket, or in a sandbox the one that its agent's tools have.
pub fn socket(home: &Path) -> PathBuf {
    home::own_socket().unwrap_or_else(|| Layout::new(home).api_socket())
}

pub fn log(home: &Path) -> PathBuf {
    Layout::new(home).daemon_log()
}

/// Whether somebody listens there.
pub fn listens(socket: &Path) -> Result<bool, Error> {
    match UnixStream::connect(socket) {
        Ok(_) => Ok(true),
        Err(error) => {
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(false),
                io::ErrorKind::InvalidInput => Err(cannot_use(socket, error)
                    .next("set AGENTD_HOME to a folder with a shorter path")),
                _ => Err(cannot_use(socket, error)),
            }
        }
    }
}

impl Connection {
    pub async fn open() -> Result<Self, Error> {
        Self::at(home::folder()?).await
    }

    /// To the daemon of this folder.
    pub async fn at(home: PathBuf) -> Result<Self, Error> {
        let client = client_at(&home);
        let starter = Arc::new(Starter::new(home));
        starter.ensure().await?;
        starter.remember_home();
        Ok(Self {
            client: client.with_retry(Arc::clone(&starter) as _),
            starter,
            failing_since: None,
        })
    }

    /// What came on a stream; none where the daemon went away, and is back now: the stream is to be opened again.
    pub async fn or_again<T>(
        &mut self,
        answer: Result<T, agentd_client::Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(answer) => {
                self.failing_since = None;
                Ok(Some(answer))
            }
            Err(error) if error.is_gone() => {
                let since = *self.failing_since.get_or_insert_with(Instant::now);
                self.starter.again(since).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Starts a daemon where none listens.
    pub async fn ensure(&self) -> Result<(), Error> {
        self.starter.ensure().await
    }

    /// The daemon, where this process started it.
    pub fn take_daemon(&self) -> Option<Child> {
        self.starter.take_daemon()
    }
}
