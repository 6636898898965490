//! The daemon's sockets: one for clients, one for runtimes, and one per agent for its tools.
//!
//! A clean-up job may delete the first two. Then no client could reach the daemon, or start another one while it lives.
//! So the daemon creates them again. If the whole home was deleted, the daemon ends.

use crate::daemon::{Daemon, left};
use crate::layout::Layout;
use crate::spawn::keep;
use crate::{Error, http, io_error, link};
use agentd_core::id::AgentId;
use agentd_failpoint as failpoint;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::task::{AbortHandle, JoinHandle};

/// How often the daemon checks that the sockets exist.
const LOOK: Duration = Duration::from_millis(150);

/// Listens on a socket that other users cannot use. An existing socket is stale, because this daemon holds the lock.
pub fn listen(path: &Path) -> Result<UnixListener, Error> {
    let what = format!("cannot listen on {}", path.display());
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error(what)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(io_error(what.clone()))?;
    let private = std::fs::Permissions::from_mode(match failpoint::injected_bug("state_open") {
        true => 0o666,
        false => 0o600,
    });
    std::fs::set_permissions(path, private).map_err(io_error(what))?;
    Ok(listener)
}

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

/// Serves the tools of an agent on its own socket, whose directory is bound into their sandbox. Called when the agent's
/// process connects: before that it has started no tool under this daemon, and an older tool reconnects.
pub fn serve_tools(daemon: &Arc<Daemon>, agent: AgentId) {
    let path = daemon.layout.tool_socket(agent);
    if daemon.tool_sockets.has(agent) && path.exists() {
        return;
    }
    let made = daemon
        .layout
        .make_below(&daemon.layout.tool_socket_dir(agent))
        .map_err(io_error("the tool socket's directory cannot be created"));
    let listener = match made.and_then(|()| listen(&path)) {
        Ok(listener) => Arc::new(listener),
        Err(error) => {
            // The path may be too long for a socket. The agent works without it, but its tools cannot reach the daemon.
            tracing::warn!(%agent, %error, "tool socket not created: tools have no API");
            return;
        }
    };
    let (served, room) = (Arc::clone(daemon), http::Room::of_tools());
    let task = keep("tool socket", daemon.ending(), move || {
        http::serve(
            Arc::clone(&served),
            Arc::clone(&listener),
            Some(agent),
            room.clone(),
        )
    });
    daemon.tool_sockets.put(agent, task.abort_handle());
}

/// The servers of the tool sockets, by agent.
#[derive(Default)]
pub struct ToolSockets(Mutex<HashMap<AgentId, AbortHandle>>);

impl ToolSockets {
    fn served(&self) -> MutexGuard<'_, HashMap<AgentId, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, agent: AgentId) -> bool {
        self.served().contains_key(&agent)
    }

    fn put(&self, agent: AgentId, server: AbortHandle) {
        if let Some(old) = self.served().insert(agent, server) {
            old.abort();
        }
    }

    /// Ends the server of an agent that is purged.
    pub fn close(&self, agent: AgentId) {
        if let Some(server) = self.served().remove(&agent) {
            server.abort();
        }
    }
}

/// Creates deleted sockets again. Existing connections continue.
pub async fn reconcile(daemon: Arc<Daemon>, layout: Layout) {
    let mut ending = daemon.ending();
    // How often in a row each was missing. A deletion of the whole home may begin with them: so they are created again
    // only when they are missing for the second time and the home still exists.
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

/// None if the socket exists or cannot be created now.
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
    let made = made.map_err(io_error("the socket's directory cannot be created"));
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
