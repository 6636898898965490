//! Lets the service manager start the daemon, where the service is installed.

use super::socket::{connect, is_held};
use crate::error::Error;
use crate::service::systemd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the socket may take to appear after the service manager has said that it listens.
const APPEARS: Duration = Duration::from_secs(2);
/// The same while a daemon holds its lock: it is starting, and creates a socket whose file is gone.
const HELD: Duration = Duration::from_secs(10);
/// The most that [`start`] takes, with both orders to the service manager.
pub const LONGEST: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// Makes the service manager listen: a connection starts the daemon. None if the service is not installed for this home,
/// or if the service manager does not answer or listen in time. The caller starts a daemon itself then.
pub async fn start(home: &Path, socket: &Path) -> Result<Option<UnixStream>, Error> {
    if !systemd::start(home) {
        return Ok(None);
    }
    let stream = appears(home, socket).await?;
    // If the file of an active socket was deleted, only a restart of the socket creates it again.
    if stream.is_some() || is_held(home) || !systemd::restart_socket() {
        return Ok(stream);
    }
    appears(home, socket).await
}

async fn appears(home: &Path, socket: &Path) -> Result<Option<UnixStream>, Error> {
    let began = Instant::now();
    loop {
        if let Some(stream) = connect(socket)? {
            return Ok(Some(stream));
        }
        let waited = began.elapsed();
        if waited >= HELD || (waited >= APPEARS && !is_held(home)) {
            return Ok(None);
        }
        // tidy: polls for the socket
        tokio::time::sleep(POLL).await;
    }
}
