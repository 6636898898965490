//! How far the shutdown of the daemon has come.

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    No,
    /// The agents' processes end first.
    Stops,
    /// Only the daemon ends; the agents' processes continue.
    Alone,
    /// The daemon accepts no connection any more, and streams end.
    Leaves,
}

/// Waits for [`Ending::Leaves`].
pub async fn left(ending: &mut watch::Receiver<Ending>) {
    // If the sender is dropped, the daemon has ended: that is the same.
    let _gone = ending.wait_for(|ending| *ending == Ending::Leaves).await;
}
