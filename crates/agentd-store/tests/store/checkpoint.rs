//! A checkpoint, past the store.

use crate::lab::{Author, Lab, run};
use agentd_store::{SqliteStore, Store as _};

/// What was committed is the same before and after, and the next start has nothing to read first.
#[test]
fn a_rest_moves_the_log_to_its_place() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(lab.options()).unwrap();
        let mut author = Author::create(&store, 1, "coder").await;
        for _ in 0..50 {
            let events = author.turn("hello", "there");
            author.append(&store, events).await;
        }
        store.wait_caught_up().await.unwrap();
        let length = |name: &str| std::fs::metadata(lab.dir().join(name)).unwrap().len();
        assert!(length("journal.db-wal") > 0);
        let before = store.load(author.agent).await.unwrap();
        store.checkpoint().await.unwrap();
        assert_eq!((length("journal.db-wal"), length("derived.db-wal")), (0, 0));
        assert_eq!(store.load(author.agent).await.unwrap(), before);
        let events = author.turn("and", "on");
        author.append(&store, events).await;
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}
