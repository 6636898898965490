//! Search: the words that stand in the journal, newest first, and no others.

use crate::author::Author;
use crate::subject::Subject;
use agentd_core::event::Body;
use agentd_core::id::AgentId;
use agentd_store::{Cursor, Error, SearchPage, SearchQuery, Store};
use std::sync::Arc;

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        agent: None,
        limit: 100,
        before: None,
    }
}

async fn search(store: &dyn Store, text: &str) -> SearchPage {
    store.search(query(text)).await.unwrap()
}

async fn caught_up(subject: &impl Subject) -> (Arc<dyn Store>, Author, Author) {
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut two = Author::create(&*store, 2, "two").await;
    for n in 0..60 {
        let events = one.turn(&format!("apple number{n}"), "a plain answer");
        one.append(&*store, events).await;
        let output = "banana split ".repeat(if n == 7 { 2000 } else { 1 });
        let events = two.tool_turn(&format!("apple banana number{n}"), &output, "cherry pie");
        two.append(&*store, events).await;
    }
    store.wait_caught_up().await.unwrap();
    (store, one, two)
}

pub async fn words_phrases_and_combinations_are_found_where_they_stand<S: Subject>() {
    let subject = S::new().await;
    let (store, one, two) = caught_up(&subject).await;
    let of = |page: &SearchPage, agent: AgentId| {
        page.hits
            .iter()
            .filter(|(_, hit)| hit.agent == agent)
            .count()
    };
    let found = search(&*store, "number33").await;
    assert_eq!((of(&found, one.agent), of(&found, two.agent)), (1, 1));
    assert!(
        found
            .hits
            .iter()
            .all(|(_, hit)| matches!(hit.body, Body::Prompt(_)))
    );
    assert_eq!(
        search(&*store, "apple AND number33 AND banana")
            .await
            .hits
            .len(),
        1
    );
    assert_eq!(
        search(&*store, "\"banana split\" NOT apple")
            .await
            .hits
            .len(),
        60
    );
    assert_eq!(search(&*store, "cherry OR number5").await.hits.len(), 62);
    assert_eq!(search(&*store, "chér*").await.hits.len(), 60);
    assert_eq!(search(&*store, "PLAIN").await.hits.len(), 60);
    assert_eq!(search(&*store, "nothing").await.hits.len(), 0);
    // What a tool was asked to do can be found, too.
    assert_eq!(search(&*store, "shell").await.hits.len(), 60);
    let mut only = query("apple");
    only.agent = Some(one.agent);
    let found = store.search(only).await.unwrap();
    assert_eq!((of(&found, one.agent), of(&found, two.agent)), (60, 0));
}

pub async fn pages_give_every_hit_once_newest_first<S: Subject>() {
    let subject = S::new().await;
    let (store, one, _) = caught_up(&subject).await;
    // Newest first is the order of all commits, backwards.
    let mut order = Vec::new();
    let mut after = Some(Cursor::default());
    while let Some(cursor) = after.take() {
        let page = store.read_all(cursor, 1000).await.unwrap();
        order.extend(
            page.events
                .into_iter()
                .map(|(_, event)| (event.agent, event.seq)),
        );
        after = page.next;
    }
    for (agent, expected) in [(None, 120), (Some(one.agent), 60)] {
        let mut before = None;
        let mut hits = Vec::new();
        loop {
            let page = SearchQuery {
                agent,
                limit: 7,
                before,
                ..query("apple")
            };
            let page = store.search(page).await.unwrap();
            hits.extend(page.hits.iter().map(|(_, hit)| (hit.agent, hit.seq)));
            before = page.next;
            if before.is_none() {
                break;
            }
            assert_eq!(page.hits.len(), 7);
        }
        assert_eq!(hits.len(), expected);
        let place = |hit: &_| order.iter().position(|event| event == hit).unwrap();
        assert!(hits.is_sorted_by(|newer, older| place(newer) > place(older)));
    }
}

pub async fn a_query_that_makes_no_sense_is_told_so<S: Subject>() {
    let subject = S::new().await;
    // On an empty store, too.
    let store = subject.open().await;
    store.wait_caught_up().await.unwrap();
    for text in ["\"open", "AND", "a AND", "who: me", "(", "it's", "a-b", ""] {
        let refused = store.search(query(text)).await;
        let Err(Error::BadQuery(_)) = &refused else {
            panic!("{text}: {refused:?}");
        };
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("in quotes"), "{text}");
    }
    assert_eq!(search(&*store, "\"it's\"").await.hits.len(), 0);
}

pub async fn the_index_catches_up_after_a_restart<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    for round in 0..5 {
        // The store is closed before the index has caught up.
        for n in 0..40 {
            let events = one.turn(&format!("round{round} number{n}"), "done");
            one.append(&*store, events).await;
        }
        store = subject.reopen(store).await;
        store.wait_caught_up().await.unwrap();
        for round in 0..=round {
            let found = search(&*store, &format!("round{round}")).await;
            assert_eq!(found.hits.len(), 40);
        }
    }
}
