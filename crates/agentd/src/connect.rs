//! Connections to the daemon. If none listens, one is started.

mod by_systemd;
mod socket;
mod starter;

pub use socket::{client_at, is_held, listens, log, see_log, socket};

use crate::error::Error;
use crate::home;
use agentd_client::Client;
use agentd_process::Child;
use starter::Starter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub struct Connection {
    /// Retries a request if the daemon dies before it has answered.
    pub client: Client,
    starter: Arc<Starter>,
    /// When the current series of broken streams began; none after a stream has delivered an item.
    failing_since: Option<Instant>,
}

/// A client for requests; starts a daemon if none listens.
pub async fn client() -> Result<Client, Error> {
    Ok(Connection::open().await?.client)
}

/// A client that does not start a daemon.
pub fn client_of_any() -> Result<Client, Error> {
    Ok(client_at(&home::dir()?))
}

impl Connection {
    pub async fn open() -> Result<Self, Error> {
        Self::at(home::dir()?).await
    }

    /// A connection to the daemon of this state directory.
    pub async fn at(home: PathBuf) -> Result<Self, Error> {
        let client = client_at(&home);
        let starter = Arc::new(Starter::new(home));
        let stream = starter.ensure().await?;
        starter.remember_home();
        Ok(Self {
            client: client
                .with_stream(stream)
                .with_retry(Arc::clone(&starter) as _),
            starter,
            failing_since: None,
        })
    }

    /// The item of a stream. None if the daemon died and a new one listens: the caller must open the stream again.
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

    /// Starts a daemon if none listens.
    pub async fn ensure(&self) -> Result<(), Error> {
        self.starter.ensure().await.map(drop)
    }

    /// The daemon, if this process started it.
    pub fn take_daemon(&self) -> Option<Child> {
        self.starter.take_daemon()
    }
}
