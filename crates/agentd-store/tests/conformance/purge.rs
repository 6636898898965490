//! Purge: what may be purged, and what stays as it was.

use crate::author::{Author, conversation_id, events_of};
use crate::run::soon;
use crate::subject::Subject;
use agentd_core::event::{BeginSource, Body, Direction};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::time::Timestamp;
use agentd_store::{Append, Deletion, Error, Purge, SearchQuery, Store};
use serde_json::Value;

const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

async fn hits(store: &dyn Store, word: &str) -> usize {
    let query = SearchQuery {
        text: word.to_owned(),
        agent: None,
        limit: 10,
        before: None,
    };
    store.search(query).await.unwrap().hits.len()
}

async fn purge(store: &dyn Store, author: &Author, conversation: ConversationId) -> Purge {
    soon(store.purge(author.fence, conversation, AT))
        .await
        .unwrap()
}

/// A state without what a purge may change, and with what it must.
fn comparable(state: &agentd_core::state::AgentState, purged: ConversationId) -> Value {
    let mut value = serde_json::to_value(state).unwrap();
    let state = value.as_object_mut().unwrap();
    state.remove("head");
    state.remove("updated_at");
    let tree = state["tree"].as_object_mut().unwrap();
    tree.remove("undo");
    tree.remove("redo");
    let current = tree["current"].as_str().unwrap().to_owned();
    let conversations = tree["conversations"].as_object_mut().unwrap();
    conversations[&current]
        .as_object_mut()
        .unwrap()
        .remove("head");
    conversations[&purged.to_string()]["purged"] = Value::Bool(true);
    value
}

pub async fn tree_tasks_and_cost_fold_as_before_and_nothing_leads_back<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = author.tool_turn("first", "output", "answer");
    author.append(&*store, events).await;
    let first = author.conversation;
    let events = author.reset();
    author.append(&*store, events).await;
    let events = author.turn("second", "answer");
    author.append(&*store, events).await;
    let second = author.conversation;
    let events = author.reset();
    author.append(&*store, events).await;
    let events = author.move_to(second, Direction::Undo);
    author.append(&*store, events).await;
    let before = store.load(author.agent).await.unwrap();
    assert_eq!(before.state.tree.undo_target(), Some(first));

    purge(&*store, &author, first).await;
    let after = store.load(author.agent).await.unwrap();
    assert_eq!(after.state.tree.undo_target(), None);
    assert!(after.state.tree.get(first).unwrap().purged);
    assert_eq!(
        comparable(&after.state, first),
        comparable(&before.state, first)
    );
    assert_eq!(after.window, before.window);
    assert_eq!(
        store.usage(None).await.unwrap(),
        before.state.spending.lifetime
    );

    // The redo stack does not lead to what is gone either.
    let third = before.state.tree.redo_target().unwrap();
    purge(&*store, &author, third).await;
    let after = store.load(author.agent).await.unwrap();
    assert_eq!(after.state.tree.redo_target(), None);
    // It is in the journal, and an undo onto it anyway changes nothing but the count of oddities.
    let events = author.move_to(first, Direction::Undo);
    author.append(&*store, events).await;
    let refused = store.load(author.agent).await.unwrap();
    assert_eq!(refused.state.tree.current(), Some(second));
}

pub async fn the_current_conversation_and_one_that_a_fork_needs_are_refused_by_name<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut parent = Author::create(&*store, 1, "parent").await;
    let events = parent.turn("hello", "there");
    parent.append(&*store, events).await;
    let old = parent.conversation;
    let refused = store.purge(parent.fence, old, AT).await;
    assert!(matches!(refused, Err(Error::PurgeCurrent { conversation }) if conversation == old));

    let mut fork = Author::claim(&*store, 2).await;
    let events = fork.forked("forked", parent.here());
    fork.append(&*store, events).await;
    // Also of the current one: an archived agent would no longer continue it, but the fork needs it nevertheless.
    let refused = store.purge(parent.fence, old, AT).await;
    assert!(matches!(refused, Err(Error::PurgeNeeded { .. })));
    let events = parent.rewind(old, Seq(4));
    parent.append(&*store, events).await;
    let branch = parent.conversation;
    let events = parent.reset();
    parent.append(&*store, events).await;

    let refused = store.purge(parent.fence, old, AT).await.unwrap_err();
    let Error::PurgeNeeded { by, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(by.len(), 2);
    assert!(refused.to_string().contains("`forked`"), "{refused}");
    assert!(refused.to_string().contains("`parent`"), "{refused}");
    // What was refused has changed nothing.
    store.wait_caught_up().await.unwrap();
    assert_eq!(hits(&*store, "hello").await, 1);

    // Once no branch needs it any more, it can be purged.
    purge(&*store, &parent, branch).await;
    let refused = store.purge(parent.fence, old, AT).await.unwrap_err();
    assert!(!refused.to_string().contains("`parent`"), "{refused}");
    let needed = fork.conversation;
    let events = fork.reset();
    fork.append(&*store, events).await;
    purge(&*store, &fork, needed).await;
    purge(&*store, &parent, old).await;
    assert!(store.verify(None).await.unwrap().is_clean());

    // And nothing begins there again.
    let events = parent.rewind(old, Seq(4));
    let refused = store.append(Append::new(parent.fence, events)).await;
    assert!(matches!(refused, Err(Error::OriginPurged { conversation }) if conversation == old));
    let mut late = Author::claim(&*store, 3).await;
    let from = agentd_core::event::Origin {
        agent: parent.agent,
        conversation: old,
        seq: Seq(4),
    };
    let events = late.begin(BeginSource::Fork, Some(from));
    let refused = store.append(Append::new(late.fence, events)).await;
    assert!(matches!(refused, Err(Error::OriginPurged { .. })));
}

pub async fn an_owner_of_yesterday_purges_nothing<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = author.turn("findable", "answer");
    author.append(&*store, events).await;
    let old = author.conversation;
    let events = author.reset();
    author.append(&*store, events).await;
    store.claim(author.agent, "somebody else").await.unwrap();
    let refused = store.purge(author.fence, old, AT).await;
    assert!(
        matches!(refused, Err(Error::StaleFence { .. })),
        "{refused:?}"
    );
    store.wait_caught_up().await.unwrap();
    assert_eq!(hits(&*store, "findable").await, 1);
}

pub async fn purging_again_finds_nothing_and_leaves_the_rest_searchable<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = author.turn("gone", "gone too");
    author.append(&*store, events).await;
    let old = author.conversation;
    let events = author.reset();
    author.append(&*store, events).await;
    let events = author.turn("kept", "kept too");
    author.append(&*store, events).await;
    assert_eq!(purge(&*store, &author, old).await.events, 2);
    assert_eq!(purge(&*store, &author, old).await.events, 0);
    store.wait_caught_up().await.unwrap();
    assert_eq!(hits(&*store, "gone").await, 0);
    assert_eq!(hits(&*store, "kept").await, 2);
    assert!(store.verify(None).await.unwrap().is_clean());
}

pub async fn what_would_be_purged_is_what_a_purge_deletes<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let long = "a long output ".repeat(2000);
    let events = author.tool_turn("first", &long, "answer");
    author.append(&*store, events).await;
    let first = author.conversation;
    let events = author.rewind(first, author.head);
    author.append(&*store, events).await;
    let second = author.conversation;
    let events = author.tool_turn("second", &long, "answer");
    author.append(&*store, events).await;
    let events = author.reset();
    author.append(&*store, events).await;
    let events = author.turn("third", "answer");
    author.append(&*store, events).await;
    let before = store.load(author.agent).await.unwrap();

    let would = async |which: &[ConversationId]| {
        let would = store.would_purge(author.agent, which.to_vec());
        would.await
    };
    // The branch needs the first one, unless it goes too; the text that both use goes with the last.
    let refused = would(&[first]).await;
    assert!(
        matches!(refused, Err(Error::PurgeNeeded { .. })),
        "{refused:?}"
    );
    let deletion = |events, blobs| Deletion { events, blobs };
    assert_eq!(would(&[second]).await.unwrap(), deletion(4, 0));
    assert_eq!(would(&[first, second]).await.unwrap(), deletion(8, 1));
    let refused = would(&[author.conversation]).await;
    assert!(
        matches!(refused, Err(Error::PurgeCurrent { .. })),
        "{refused:?}"
    );
    let unknown = conversation_id(99);
    let refused = would(&[unknown]).await;
    assert!(
        matches!(refused, Err(Error::NoSuchConversation { .. })),
        "{refused:?}"
    );
    let refused = store.purge(author.fence, unknown, AT).await;
    assert!(
        matches!(refused, Err(Error::NoSuchConversation { .. })),
        "{refused:?}"
    );
    // Asking changes nothing.
    assert_eq!(store.load(author.agent).await.unwrap(), before);

    let done = purge(&*store, &author, second).await;
    assert_eq!((done.events, done.blobs), (4, 0));
    assert_eq!(done.seq, author.head.next());
    let done = purge(&*store, &author, first).await;
    assert_eq!((done.events, done.blobs), (4, 1));
    let gone = events_of(&*store, author.agent).await;
    let gone = gone
        .iter()
        .filter(|event| matches!(event.body, Body::Gone(_)));
    assert_eq!(gone.count(), 8);
    // Nothing about it changes with a restart.
    let store = subject.reopen(store).await;
    let after = store.load(author.agent).await.unwrap();
    assert!(after.state.tree.get(first).unwrap().purged);
    assert_eq!(after.window, before.window);
    assert!(store.verify(None).await.unwrap().is_clean());
}
