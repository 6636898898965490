//! Sends notifications, and the answers of bindings.
//!
//! The journal is the outbox. Each destination has one task and one position in the journal, which is stored after each
//! message that was accepted. A message that was sent again after a crash has the same id.
//!
//! - `position`: the stored position of a destination.
//! - `deliver`: sends one message to a webhook until it is accepted; `desktop`: shows one on the screen.
//! - `trouble`: what happened to the daemon itself, which is in no agent's journal.
//! - `again`: what follows an error of the store or the disk.
//! - `past`: what an agent was at an earlier event.
//! - `notifications`: the user's destinations; `bindings`: the webhooks of bindings.

mod again;
mod bindings;
mod deliver;
mod desktop;
mod notifications;
mod past;
mod position;
pub mod trouble;

pub use bindings::destination as destination_of_binding;
pub use notifications::PREFIX as NOTIFICATIONS;

use crate::daemon::Daemon;
use crate::spawn::keep;
use std::sync::Arc;

/// Starts a task for each destination. Positions of new destinations are stored before this returns.
pub async fn start(daemon: &Arc<Daemon>) {
    if daemon.is_read_only() {
        return;
    }
    let settings = &daemon.notify;
    let destinations: Vec<String> = settings.destinations().map(str::to_owned).collect();
    notifications::forget_others(daemon, &destinations);
    match destinations.is_empty() {
        true => trouble::forget(daemon),
        false => trouble::begin(daemon).await,
    }
    for destination in destinations {
        notifications::prepare(daemon, &destination).await;
        let follower = Arc::clone(daemon);
        keep("notifications", daemon.ending(), move || {
            notifications::follow(Arc::clone(&follower), destination.clone())
        });
    }
    let follower = Arc::clone(daemon);
    keep("bindings", daemon.ending(), move || {
        bindings::follow_all(Arc::clone(&follower))
    });
}

/// Called when the daemon ends by itself, for whatever reason: only one that was killed has ended unexpectedly.
pub fn end(daemon: &Daemon) {
    trouble::end(daemon);
}
