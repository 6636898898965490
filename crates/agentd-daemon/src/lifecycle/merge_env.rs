//! Adds a caller's variables (above all, keys) to an agent whose turn may wait for one of them.

use crate::daemon::AgentHandle;
use crate::view::subagents;
use agentd_client::api::Env;

/// A turn that waits for its key continues when the key arrives; so does the turn of a subagent.
pub async fn merge_env(handle: &AgentHandle, env: &Env) {
    let below = subagents::below(handle).await;
    for handle in below.iter().chain([handle]) {
        let mut guard = handle.lock().await;
        guard.merge_env(env);
        guard.reconcile();
    }
}
