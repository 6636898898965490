//! Search finds the words in the journal, newest first, and no others.

use crate::lab::{Author, Lab, run};
use agentd_core::event::Body;
use agentd_core::id::AgentId;
use agentd_store::{Cursor, Error, SearchPage, SearchQuery, SqliteStore, Store as _};

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

async fn caught_up(lab: &Lab) -> (SqliteStore, Author, Author) {
    let store = lab.open();
    let mut one = Author::create(&store, 1, "one").await;
    let mut two = Author::create(&store, 2, "two").await;
    for n in 0..60 {
        let events = one.turn(&format!("apple number{n}"), "a plain answer");
        one.append(&store, events).await;
        let output = "banana split ".repeat(if n == 7 { 2000 } else { 1 });
        let events = two.tool_turn(&format!("apple banana number{n}"), &output, "cherry pie");
        two.append(&store, events).await;
    }
    store.wait_caught_up().await.unwrap();
    (store, one, two)
}

#[test]
fn words_phrases_and_combinations_are_found_where_they_stand() {
    let lab = Lab::new();
    run(async {
        let (store, one, two) = caught_up(&lab).await;
        let of = |page: &SearchPage, agent: AgentId| {
            page.hits
                .iter()
                .filter(|(_, hit)| hit.agent == agent)
                .count()
        };
        let found = search(&store, "number33").await;
        assert_eq!((of(&found, one.agent), of(&found, two.agent)), (1, 1));
        assert!(
            found
                .hits
                .iter()
                .all(|(_, hit)| matches!(hit.body, Body::Prompt(_)))
        );
        assert_eq!(
            search(&store, "apple AND number33 AND banana")
                .await
                .hits
                .len(),
            1
        );
        assert_eq!(
            search(&store, "\"banana split\" NOT apple")
                .await
                .hits
                .len(),
            60
        );
        assert_eq!(search(&store, "cherry OR number5").await.hits.len(), 62);
        assert_eq!(search(&store, "chér*").await.hits.len(), 60);
        assert_eq!(search(&store, "PLAIN").await.hits.len(), 60);
        assert_eq!(search(&store, "nothing").await.hits.len(), 0);
        // What a tool was asked to do can be found, too.
        assert_eq!(search(&store, "shell").await.hits.len(), 60);
        let mut only = query("apple");
        only.agent = Some(one.agent);
        let found = store.search(only).await.unwrap();
        assert_eq!((of(&found, one.agent), of(&found, two.agent)), (60, 0));
    });
}

#[test]
fn pages_give_every_hit_once_newest_first() {
    let lab = Lab::new();
    run(async {
        let (store, one, _) = caught_up(&lab).await;
        for (agent, expected) in [(None, 120), (Some(one.agent), 60)] {
            let mut before = None;
            let mut hits: Vec<Cursor> = Vec::new();
            loop {
                let page = SearchQuery {
                    agent,
                    limit: 7,
                    before,
                    ..query("apple")
                };
                let page = store.search(page).await.unwrap();
                hits.extend(page.hits.iter().map(|(cursor, _)| *cursor));
                before = page.next;
                if before.is_none() {
                    break;
                }
                assert_eq!(page.hits.len(), 7);
            }
            assert_eq!(hits.len(), expected);
            assert!(hits.is_sorted_by(|newer, older| newer > older));
        }
    });
}

#[test]
fn a_query_that_makes_no_sense_is_told_so() {
    let lab = Lab::new();
    run(async {
        // On an empty store, too.
        let store = lab.open();
        store.wait_caught_up().await.unwrap();
        for text in ["\"open", "AND", "a AND", "who: me", "(", "it's", "a-b", ""] {
            let refused = store.search(query(text)).await;
            let Err(Error::BadQuery(_)) = &refused else {
                panic!("{text}: {refused:?}");
            };
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("in quotes"), "{text}");
        }
        assert_eq!(search(&store, "\"it's\"").await.hits.len(), 0);
    });
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
