//! Search finds the words in the journal, newest first, and no others.

use crate::lab::{Author, Lab, run};
use agentd_store::{SearchPage, SearchQuery, SqliteStore, Store as _};

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        agent: None,
        limit: 100,
        before: None,
    }
}

async fn search(store: &SqliteStore, text: &str) -> SearchPage {
    store.search(query(text)).await.unwrap()
}

#[test]
fn it_follows_the_journal_and_catches_up_after_a_restart() {
    let lab = Lab::new();
    run(async {
        let mut one = {
            let store = lab.open();
            Author::create(&store, 1, "one").await
        };
        for round in 0..5 {
            // The store is closed without waiting for the index.
            let store = lab.open();
            for n in 0..40 {
                let events = one.turn(&format!("round{round} number{n}"), "done");
                one.append(&store, events).await;
            }
            drop(store);
            let store = lab.open();
            store.wait_caught_up().await.unwrap();
            for round in 0..=round {
                let found = search(&store, &format!("round{round}")).await;
                assert_eq!(found.hits.len(), 40);
            }
        }
        // And where all of it is gone.
        for name in ["derived.db", "derived.db-wal", "derived.db-shm"] {
            drop(std::fs::remove_file(lab.dir().join(name)));
        }
        let store = lab.open();
        store.wait_caught_up().await.unwrap();
        assert_eq!(search(&store, "done").await.hits.len(), 100);
        assert_eq!(search(&store, "number39").await.hits.len(), 5);
    });
}

#[test]
fn a_long_journal_is_searched_through_all_its_shards() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        // Places are dealt out in the order of commits; one shard has 16,384 of them.
        for n in 0..35 {
            let events: Vec<_> = (0..1000)
                .map(|part| {
                    let text = match part {
                        500 => format!("rare word{n}"),
                        _ => "common".to_owned(),
                    };
                    one.event(None, agentd_core::event::Note { about: None, text })
                })
                .collect();
            one.append(&store, events).await;
        }
        store.wait_caught_up().await.unwrap();
        let shards: i64 = lab
            .derived()
            .query_row("SELECT count(*) FROM shard", [], |row| row.get(0))
            .unwrap();
        assert_eq!(shards, 3);
        let mut before = None;
        let mut found = Vec::new();
        loop {
            let page = SearchQuery {
                limit: 4,
                before,
                ..query("rare")
            };
            let page = store.search(page).await.unwrap();
            found.extend(page.hits.into_iter().map(|(_, hit)| hit.seq));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), 35);
        assert!(found.is_sorted_by(|newer, older| newer > older));
        assert_eq!(search(&store, "word0").await.hits.len(), 1);
        assert_eq!(search(&store, "word34").await.hits.len(), 1);
    });
}
