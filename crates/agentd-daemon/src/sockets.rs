//! Sockets that other users cannot use.

use agentd_failpoint as failpoint;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio::net::UnixListener;

/// Listens on a socket. An existing socket is stale, because this daemon holds the lock.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let private = std::fs::Permissions::from_mode(match failpoint::injected_bug("state_open") {
        true => 0o666,
        false => 0o600,
    });
    std::fs::set_permissions(path, private)?;
    Ok(listener)
}
