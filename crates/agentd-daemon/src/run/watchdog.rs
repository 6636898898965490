//! Signs of life for the service manager.

use crate::daemon::Daemon;
use crate::service::{News, Service};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Signs of life for each time limit of the service manager.
const SIGNS: u32 = 3;

/// Tells the service manager regularly that the daemon is alive: that its tasks run, and that the store answers.
pub async fn watchdog(daemon: Arc<Daemon>, service: Service, limit: Duration) {
    let mut ticks = tokio::time::interval(limit / SIGNS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A read that waits for no other one: a daemon that exports two large agents at once is alive.
        match tokio::time::timeout(limit, daemon.store.end()).await {
            // A store that cannot be read is reported by the requests that need it. A restart would not repair it.
            Ok(_) => service.tell(News::Alive),
            Err(_) => tracing::error!("the store does not answer: no sign of life sent"),
        }
    }
}
