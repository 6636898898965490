//! The suite, run against the embedded store.

use crate::subject::Subject;
use agentd_store::{Options, SqliteStore, Store};
use std::sync::Arc;
use tempfile::TempDir;

/// A directory.
struct Sqlite(TempDir);

impl Subject for Sqlite {
    async fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = Options {
            snapshot_every: 10,
            ..Options::new(self.0.path().join("state"))
        };
        Arc::new(SqliteStore::open(options).unwrap())
    }
}

crate::suite::every_test!(Sqlite);
