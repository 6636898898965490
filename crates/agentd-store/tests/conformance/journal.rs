//! The journal itself: claimed, appended to, folded, and the same after a restart.

use crate::author::{Author, agent_id, conversation_id, events_of};
use crate::subject::Subject;
use crate::walk::Walk;
use agentd_core::event::{AgentRenamed, Body, Kind};
use agentd_core::id::Seq;
use agentd_store::{
    Ack, AgentQuery, Append, Cursor, DraftAck, DraftChunk, Error, Fence, SearchQuery, Store,
};

pub async fn a_claim_counts_up_and_makes_no_agent<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    for epoch in 1..=4 {
        let claim = store.claim(agent_id(1), "owner").await.unwrap();
        let agent = agent_id(1);
        assert_eq!(claim.fence, Fence { agent, epoch });
        assert_eq!(claim.quarantined, None);
        store = subject.reopen(store).await;
    }
    let nothing = store.load(agent_id(1)).await;
    assert!(matches!(nothing, Err(Error::NoSuchAgent { .. })));
    assert!(!store.is_listed(agent_id(1)).await.unwrap());
    let query = AgentQuery {
        limit: 10,
        ..AgentQuery::default()
    };
    assert_eq!(store.agents(query).await.unwrap().total, 0);
    // Another agent's fence begins at one.
    let other = store.claim(agent_id(2), "owner").await.unwrap();
    assert_eq!(other.fence.epoch, 1);
}

pub async fn an_append_is_stored_whole_or_not_at_all<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    Author::create(&*store, 2, "two").await;
    let before = store.load(one.agent).await.unwrap();
    // The last event is refused: the ones before it must not be stored either.
    let name = "two".to_owned();
    let taken = one.event(None, AgentRenamed { name });
    let gone = Body::purged(Kind::Prompt.name(), Kind::Prompt.version()).unwrap();
    let purged = one.event(None, gone);
    for bad in [taken, purged] {
        let mut events = one.turn("unheard", "unheard");
        events.push(bad);
        let refused = store.append(Append::new(one.fence, events)).await;
        assert!(
            matches!(refused, Err(Error::NameTaken { .. } | Error::WithoutWords)),
            "{refused:?}"
        );
        assert_eq!(store.load(one.agent).await.unwrap(), before);
    }
    // A group of events has consecutive numbers, in the order in which they were sent.
    let events = one.turn("heard", "heard");
    let sent: Vec<Kind> = events.iter().map(|event| event.body.kind()).collect();
    let ack = store.append(Append::new(one.fence, events)).await.unwrap();
    let (first, last) = (Seq(3), Seq(10));
    assert_eq!(ack, Ack::Committed { first, last });
    let stored = events_of(&*store, one.agent).await;
    let kinds: Vec<Kind> = stored.iter().skip(2).map(|event| event.kind()).collect();
    assert_eq!(kinds, sent);
    assert!(stored.iter().map(|event| event.seq.0).eq(1..=10));
}

/// With snapshots on the way, and whatever moved the pointer.
pub async fn a_load_is_the_fold_of_all_events<S: Subject>() {
    for seed in 11..=12 {
        let subject = S::new().await;
        let mut store = subject.open().await;
        let mut walk = Walk::new(seed);
        for step in 0..60 {
            let (at, events) = walk.step(&*store).await;
            for event in events {
                walk.append_one(&*store, at, event).await;
            }
            if walk.dice.roll(2) == 0 {
                store.wait_caught_up().await.unwrap();
            }
            walk.compare(&*store, walk.authors[at].agent).await;
            if step % 20 == 19 {
                store = subject.reopen(store).await;
            }
        }
        walk.compare_all(&*store).await;
    }
}

pub async fn a_window_of_a_conversation_that_does_not_exist_is_refused<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let events = author.turn("first", "answer");
    author.append(&*store, events).await;
    let middle = author.head;
    let events = author.turn("second", "answer");
    author.append(&*store, events).await;
    let window = async |through| {
        let window = store.window(author.agent, author.conversation, through);
        window.await.unwrap().items().len()
    };
    assert_eq!((window(middle).await, window(author.head).await), (2, 4));
    // The end of the journal is the end of the window.
    assert_eq!(window(Seq(u64::MAX)).await, 4);
    let unknown = conversation_id(99);
    let refused = store.window(author.agent, unknown, author.head).await;
    assert!(
        matches!(refused, Err(Error::NoSuchConversation { conversation, .. }) if conversation == unknown)
    );
    let refused = store.window(agent_id(9), unknown, author.head).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
}

/// What a store answers about one agent and about all of them.
async fn everything(store: &dyn Store, author: &Author) -> String {
    let query = AgentQuery {
        limit: 10,
        ..AgentQuery::default()
    };
    let all = store.read_all(Cursor::default(), 1000).await.unwrap();
    let search = SearchQuery {
        text: "findable".to_owned(),
        agent: None,
        limit: 10,
        before: None,
    };
    format!(
        "{:?}\n{:?}\n{all:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        store.load(author.agent).await.unwrap(),
        events_of(store, author.agent).await,
        store.draft(author.agent).await.unwrap(),
        store.agents(query).await.unwrap(),
        [
            store.find("one").await.unwrap(),
            store.find("uno").await.unwrap()
        ],
        store.usage(None).await.unwrap(),
        store.search(search).await.unwrap(),
    )
}

pub async fn a_restart_keeps_everything<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let output = "long output ".repeat(3000);
    let mut events = author.tool_turn("findable", &output, "answer");
    let name = "uno".to_owned();
    events.push(author.event(None, AgentRenamed { name }));
    events.extend(author.reset());
    author.append(&*store, events).await;
    Author::create(&*store, 2, "two").await;
    let chunk = DraftChunk {
        request: author.next_try(),
        offset: 0,
        bytes: b"half a reply".to_vec(),
    };
    let kept = store.write_draft(author.fence, chunk).await.unwrap();
    assert_eq!(kept, DraftAck::Kept);
    store.wait_caught_up().await.unwrap();
    let before = everything(&*store, &author).await;
    assert!(before.contains(&output) && before.contains("findable"));
    for _ in 0..2 {
        store = subject.reopen(store).await;
        store.wait_caught_up().await.unwrap();
        assert_eq!(everything(&*store, &author).await, before);
    }
    // The owner goes on: a restart takes no fence away.
    let events = author.turn("and", "on");
    author.append(&*store, events).await;
}

pub async fn verify_and_checkpoint_change_nothing<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let events = one.turn("findable", "answer");
    one.append(&*store, events).await;
    Author::create(&*store, 2, "two").await;
    store.wait_caught_up().await.unwrap();
    let before = everything(&*store, &one).await;
    let report = store.verify(None).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(
        (report.agents, report.events, report.quarantined),
        (2, 12, 0)
    );
    let report = store.verify(Some(one.agent)).await.unwrap();
    assert_eq!((report.agents, report.events), (1, 10));
    let refused = store.verify(Some(agent_id(9))).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
    store.checkpoint().await.unwrap();
    assert_eq!(everything(&*store, &one).await, before);
}
