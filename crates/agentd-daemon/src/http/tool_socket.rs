//! The socket of an agent's tools: their only access to the daemon.

use super::serve::{Room, serve};
use crate::daemon::Daemon;
use crate::sockets::listen;
use crate::spawn::{blocking, keep};
use agentd_core::id::AgentId;
use std::sync::Arc;

/// Serves the tools of an agent on its own socket, whose directory is bound into their sandbox. Called when the agent's
/// process connects: until then it starts no tool under this daemon. A tool from before that must reconnect.
pub async fn serve_tools(daemon: &Arc<Daemon>, agent: AgentId) {
    let (layout, is_served) = (daemon.layout.clone(), daemon.tool_sockets.has(agent));
    let made = blocking(move || {
        let path = layout.tool_socket(agent);
        if is_served && path.exists() {
            return Ok(None);
        }
        layout.make_below(&layout.tool_socket_dir(agent))?;
        listen(&path).map(Some)
    });
    let listener = match made.await {
        Ok(Some(listener)) => Arc::new(listener),
        Ok(None) => return,
        Err(error) => {
            // The path may be too long for a socket. The agent works without it, but its tools cannot reach the daemon.
            let path = daemon.layout.tool_socket(agent);
            let path = path.display();
            tracing::warn!(%agent, %path, %error, "tool socket not created: tools have no API");
            return;
        }
    };
    let (served, room) = (Arc::clone(daemon), Room::of_tools());
    let task = keep("tool socket", daemon.ending(), move || {
        serve(
            Arc::clone(&served),
            Arc::clone(&listener),
            Some(agent),
            room.clone(),
        )
    });
    daemon.tool_sockets.put(agent, task.abort_handle());
}
