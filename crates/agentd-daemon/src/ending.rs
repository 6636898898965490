//! Whether the daemon is shutting down, and in which way.

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    No,
    /// The agents' processes end, then the daemon.
    Stops,
    /// Only the daemon ends; the agents' processes continue.
    Alone,
    /// The last step of both ways: the daemon accepts no more connections, and streams end.
    Leaves,
}

/// Waits for [`Ending::Leaves`].
pub async fn left(ending: &mut watch::Receiver<Ending>) {
    // An error means that the daemon, which owns the sender, is gone: then there is nothing left to wait for.
    let _gone = ending.wait_for(|ending| *ending == Ending::Leaves).await;
}
