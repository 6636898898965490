//! The daemon's own sockets: one for clients, one for runtimes.
//!
//! A clean-up job may delete them. Then no client could reach the daemon, or start another one, because the first still
//! holds its lock. So the daemon creates them again. If the whole home was deleted, the daemon ends.

use crate::daemon::Daemon;
use crate::ending::left;
use crate::layout::Layout;
use crate::sockets::listen;
use crate::spawn::keep;
use crate::{http, link};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

/// How often the daemon checks that the sockets exist.
const LOOK: Duration = Duration::from_millis(150);

/// Serves the runtimes that connect to this socket, until the daemon ends.
pub fn serve_links(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    let room = link::Room::default();
    keep("link", daemon.ending(), move || {
        link::serve(Arc::clone(&daemon), Arc::clone(&listener), room.clone())
    })
}

/// Serves the clients that connect to this socket, until the daemon ends.
pub fn serve_api(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    let room = http::Room::of_daemon();
    keep("API", daemon.ending(), move || {
        http::serve(
            Arc::clone(&daemon),
            Arc::clone(&listener),
            None,
            room.clone(),
        )
    })
}

/// Creates deleted sockets again. Existing connections continue.
pub async fn reconcile(daemon: Arc<Daemon>, layout: Layout) {
    let mut ending = daemon.ending();
    // How many checks in a row have found each socket missing. A deletion of the whole home may begin with the sockets,
    // so a socket is created again only if two checks found it missing and the home still exists.
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

/// Creates a socket that two checks in a row found missing. None if it exists, or cannot be created now.
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
    match made.and_then(|()| listen(path)) {
        Ok(listener) => {
            tracing::warn!(socket = %path.display(), "deleted socket created again");
            Some(listener)
        }
        Err(error) => {
            tracing::error!(socket = %path.display(), %error, "deleted socket not created again");
            None
        }
    }
}
