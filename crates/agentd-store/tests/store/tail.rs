//! Following a journal: every event once, in order, as soon as it is committed.

use crate::lab::{Author, Lab, agent_id, run, soon};
use agentd_core::event::Note;
use agentd_core::id::Seq;
use agentd_store::{Append, Cursor, Error, ReadQuery, SqliteStore, Store as _};
use std::time::Duration;
use tokio::task::JoinSet;

const EVENTS: u64 = 600;

async fn follow(store: SqliteStore, number: u64, after: Seq, through: Seq) {
    let mut tail = store.tail(agent_id(number), after);
    let mut last = after;
    while last < through {
        let events = soon(tail.next()).await.unwrap();
        assert!(!events.is_empty());
        for event in events {
            assert_eq!(event.seq, last.next());
            assert_eq!(event.agent, agent_id(number));
            last = event.seq;
        }
    }
    assert_eq!(last, through);
}

async fn write(store: SqliteStore, mut author: Author) {
    while author.head.0 < EVENTS {
        let size = 1 + author.head.0 % 5;
        let left = EVENTS - author.head.0;
        let events = (0..size.min(left))
            .map(|n| {
                let text = format!("{n}");
                author.event(None, Note { about: None, text })
            })
            .collect();
        author.append(&store, events).await;
    }
}

#[test]
fn every_event_comes_once_and_in_order_while_appends_race() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut tasks = JoinSet::new();
        for number in 1..=4 {
            let author = Author::create(&store, number, &format!("agent-{number}")).await;
            // Several at once, from the start and from the middle.
            for after in [0, 0, 2, 100, 599] {
                tasks.spawn(follow(store.clone(), number, Seq(after), Seq(EVENTS)));
            }
            tasks.spawn(write(store.clone(), author));
        }
        while let Some(done) = soon(tasks.join_next()).await {
            done.unwrap();
        }
    });
}

#[test]
fn it_is_woken_by_the_commit_and_by_nothing_else() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        let mut two = Author::create(&store, 2, "two").await;
        let mut tail = store.tail(one.agent, one.head);
        let quiet = Duration::from_millis(50);
        assert!(tokio::time::timeout(quiet, tail.next()).await.is_err());
        // The tail does not return events of other agents, or events that were refused.
        let events = two.turn("not", "mine");
        two.append(&store, events).await;
        let events = one.turn("refused", "refused");
        let mut append = Append::new(one.fence, events);
        append.expected_generation = Some(99);
        assert!(store.append(append).await.is_err());
        assert!(tokio::time::timeout(quiet, tail.next()).await.is_err());
        // A wait that was given up has swallowed nothing.
        let events = one.turn("mine", "mine");
        one.append(&store, events).await;
        let events = soon(tail.next()).await.unwrap();
        assert_eq!(events.len(), 8);
        assert_eq!(events[7].seq, one.head);
    });
}

#[test]
fn an_unknown_agent_has_no_journal_to_follow() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut tail = store.tail(agent_id(1), Seq::ZERO);
        let refused = soon(tail.next()).await;
        assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
    });
}

#[test]
fn pages_of_one_agent_and_of_all_give_every_event_once() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut authors = Vec::new();
        for number in 1..=3 {
            authors.push(Author::create(&store, number, &format!("agent-{number}")).await);
        }
        for round in 0..20 {
            for author in &mut authors {
                let events = match round % 7 {
                    6 => author.reset(),
                    _ => author.turn("words", "answer"),
                };
                author.append(&store, events).await;
            }
        }
        let author = &authors[1];
        let all = crate::lab::events_of(&store, author.agent).await;
        for limit in [1, 7, 1000] {
            for conversation in [None, Some(author.first), Some(author.conversation)] {
                let mut query = ReadQuery {
                    conversation,
                    ..ReadQuery::all(author.agent, Seq::ZERO, limit)
                };
                let mut found = Vec::new();
                loop {
                    let page = store.read(query.clone()).await.unwrap();
                    assert!(page.events.len() <= limit);
                    found.extend(page.events);
                    match page.next {
                        Some(next) => query.after = next,
                        None => break,
                    }
                }
                let wanted = all
                    .iter()
                    .filter(|event| conversation.is_none_or(|id| id == event.conversation));
                assert!(found.iter().eq(wanted));
            }
        }
        let turn = all.iter().find_map(|event| event.turn);
        let query = ReadQuery {
            turn,
            ..ReadQuery::all(author.agent, Seq::ZERO, 1000)
        };
        assert_eq!(store.read(query).await.unwrap().events.len(), 6);

        let mut after = Cursor(0);
        let mut found = Vec::new();
        loop {
            let page = store.read_all(after, 13).await.unwrap();
            found.extend(page.events);
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert!(found.is_sorted_by(|(one, _), (two, _)| one < two));
        assert_eq!(found.len(), all.len() * 3);
        let own = found.into_iter().map(|(_, event)| event);
        assert!(own.filter(|event| event.agent == author.agent).eq(all));
    });
}

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
