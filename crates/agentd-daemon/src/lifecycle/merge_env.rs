//! Adds a caller's variables (above all, keys) to an agent whose turn may wait for one of them.

use crate::daemon::AgentHandle;
use crate::view::subagents;
use agentd_client::api::Env;

/// The agent's descendants get the variables too. A turn that waits for a key continues when the key arrives.
pub async fn merge_env(handle: &AgentHandle, env: &Env) {
    let below = subagents::below(handle).await;
    for handle in below.iter().chain([handle]) {
        let mut guard = handle.lock().await;
        guard.merge_env(env);
        guard.reconcile();
    }
}
