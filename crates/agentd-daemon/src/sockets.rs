//! The daemon's two sockets. Whoever cleans up may delete them, and then nobody could reach the daemon, nor
//! start another one while it lives: it makes them anew.

use crate::daemon::{Daemon, left};
use crate::layout::Layout;
use crate::{Error, http, io_error, link};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;

/// How often it is looked whether they are there.
const LOOK: Duration = Duration::from_millis(250);

/// A socket that nobody else may speak to. Whoever left an old one there is gone: we hold the lock.
pub fn listen(path: &Path) -> Result<UnixListener, Error> {
    let what = format!("{} cannot be listened at", path.display());
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error(what)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(io_error(what.clone()))?;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, private).map_err(io_error(what))?;
    Ok(listener)
}

/// Makes those anew that are gone. Who came by the old ones is served as before.
pub async fn mind(daemon: Arc<Daemon>, layout: Layout) {
    let mut ending = daemon.ending();
    loop {
        tokio::select! {
            () = left(&mut ending) => return,
            // tidy: polls
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Some(listener) = again(&layout, &layout.link_socket()) {
            tokio::spawn(link::serve(Arc::clone(&daemon), listener));
        }
        if let Some(listener) = again(&layout, &layout.api_socket()) {
            tokio::spawn(http::serve(Arc::clone(&daemon), listener));
        }
    }
}

/// None where it is there, or cannot be made just now.
fn again(layout: &Layout, path: &Path) -> Option<UnixListener> {
    if path.exists() {
        return None;
    }
    let made = layout.make().map_err(io_error("the folder is gone"));
    match made.and_then(|()| listen(path)) {
        Ok(listener) => {
            tracing::warn!(socket = %path.display(), "it was deleted, and is there again");
            Some(listener)
        }
        Err(error) => {
            tracing::error!(%error, "a socket was deleted, and cannot be made anew");
            None
        }
    }
}
