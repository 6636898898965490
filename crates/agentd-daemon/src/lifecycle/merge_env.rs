//! Adds a caller's variables (above all, keys) to an agent whose turn may wait for one of them.

use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::view::subagents;
use agentd_client::api::Env;
use std::sync::Arc;

/// A turn that waits for its key continues when the key arrives; so does the turn of a subagent.
pub async fn merge_env(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, env: &Env) {
    let below = subagents::below(daemon, handle).await;
    for handle in below.iter().chain([handle]) {
        let mut guard = handle.lock().await;
        daemon.merge_env(&mut guard, env);
        daemon.reconcile(handle, &mut guard);
    }
}
