//! A backend that the suite is run against.

use agentd_store::Store;
use std::sync::Arc;

/// A place where a backend keeps one store: a directory, a database. It is empty at first and keeps what is
/// written to it until it is dropped.
///
/// A backend that takes snapshots takes them often here, so that loads go through them.
pub trait Subject: Sized {
    async fn new() -> Self;

    /// Opens the store.
    async fn open(&self) -> Arc<dyn Store>;

    /// Closes the store and opens it again, as a restart does.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        assert_eq!(Arc::strong_count(&store), 1, "the store is still in use");
        drop(store);
        self.open().await
    }
}
