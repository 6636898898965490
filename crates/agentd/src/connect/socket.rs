//! The socket and the log of the daemon of a state directory. Starts no daemon.

use crate::error::{Error, Exit};
use crate::home;
use crate::service::systemd;
use agentd_client::Client;
use agentd_daemon::layout::Layout;
use agentd_failpoint as failpoint;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub fn client_at(home: &Path) -> Client {
    let failpoints = failpoint::dir().map(|_| failpoint::hit_of as agentd_client::Failpoints);
    Client::new(socket(home))
        .with_failpoints(failpoints)
        .with_any_daemon(failpoint::injected_bug("owner_unchecked"))
}

/// The daemon's socket; in a sandbox, the socket of the agent's tools.
pub fn socket(home: &Path) -> PathBuf {
    home::own_socket().unwrap_or_else(|| Layout::new(home).api_socket())
}

pub fn log(home: &Path) -> PathBuf {
    Layout::new(home).daemon_log()
}

/// What a user does to see the messages of the daemon. A service writes them to systemd's journal only.
pub fn see_log(home: &Path) -> String {
    match systemd::journal(home) {
        Some(command) => format!("see `{command}`"),
        None => format!("see {}", log(home).display()),
    }
}

/// Whether a daemon holds the lock of the home. A daemon that is shutting down does, although it no longer listens. A
/// socket on which the service manager listens says nothing about a daemon.
pub fn is_held(home: &Path) -> bool {
    let lock = File::open(Layout::new(home).daemon_lock());
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether a daemon listens at the socket.
pub fn listens(socket: &Path) -> Result<bool, Error> {
    Ok(connect(socket)?.is_some())
}

/// A connection to the daemon; none if no daemon listens.
pub fn connect(socket: &Path) -> Result<Option<UnixStream>, Error> {
    let error = match UnixStream::connect(socket) {
        Ok(stream) => return Ok(Some(stream)),
        Err(error) => error,
    };
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
        io::ErrorKind::InvalidInput => {
            Err(cannot_use(socket, error)
                .next("set AGENTD_HOME to a directory with a shorter path"))
        }
        _ => Err(cannot_use(socket, error)),
    }
}

pub fn cannot_use(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(
        Exit::Unavailable,
        format!("{} cannot be used", path.display()),
    )
    .because(error)
}
