//! What a caller works with (a key, above all), for an agent whose turn may wait for it.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::view::kin;
use agentd_client::api::Env;
use std::sync::Arc;

/// A turn that waits for its key goes on by itself when it is there; so does that of a subagent.
pub async fn bring(daemon: &Arc<Daemon>, desk: &Arc<Desk>, env: &Env) {
    let below = kin::below(daemon, desk).await;
    for desk in below.iter().chain([desk]) {
        let mut guard = desk.lock().await;
        daemon.supply(&mut guard, env);
        daemon.mind(desk, &mut guard);
    }
}
