//! The daemon's two sockets. Whoever cleans up may delete them, and then nobody could reach the daemon, nor
//! start another one while it lives: it makes them anew. Not if the whole home is gone: then it ends.

use crate::daemon::{Daemon, left};
use crate::layout::Layout;
use crate::spawn::keep;
use crate::{Error, http, io_error, link};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

/// How often it is looked whether they are there.
const LOOK: Duration = Duration::from_millis(150);

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

/// Serves runtimes that come by this socket, until the daemon leaves.
pub fn serve_links(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    keep("link", daemon.ending(), move || {
        link::serve(Arc::clone(&daemon), Arc::clone(&listener))
    })
}

/// Serves clients that come by this socket, until the daemon leaves.
pub fn serve_api(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    keep("api", daemon.ending(), move || {
        http::serve(Arc::clone(&daemon), Arc::clone(&listener))
    })
}

/// Makes those anew that are gone. Who came by the old ones is served as before.
pub async fn mind(daemon: Arc<Daemon>, layout: Layout) {
    let mut ending = daemon.ending();
    // How often in a row each was missing. Whoever deletes the whole home may begin with them: so they are made anew
    // only when they are missing for a second time, and the home is still there.
    let (mut links, mut apis) = (0, 0);
    loop {
        tokio::select! {
            () = left(&mut ending) => return,
            // tidy: polls
            () = tokio::time::sleep(LOOK) => {}
        }
        if daemon.check_home().is_err() {
            return;
        }
        if let Some(listener) = again(&layout, &layout.link_socket(), &mut links) {
            serve_links(&daemon, listener);
        }
        if let Some(listener) = again(&layout, &layout.api_socket(), &mut apis) {
            serve_api(&daemon, listener);
        }
    }
}

/// None where it is there, or cannot be made just now.
fn again(layout: &Layout, path: &Path, missing: &mut u32) -> Option<UnixListener> {
    if path.exists() {
        *missing = 0;
        return None;
    }
    *missing += 1;
    if *missing < 2 {
        return None;
    }
    let made = layout.make_below(&layout.run());
    let made = made.map_err(io_error("the folder is gone"));
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
