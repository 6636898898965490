//! Following a journal: every event once, in order, as soon as it is there.

use crate::author::{Author, agent_id, events_of};
use crate::run::soon;
use crate::subject::Subject;
use agentd_core::event::Note;
use agentd_core::id::Seq;
use agentd_store::{AgentCursor, AgentQuery, Append, Cursor, Error, ReadQuery, SearchQuery, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const EVENTS: u64 = 600;

async fn follow(store: Arc<dyn Store>, number: u64, after: Seq, through: Seq) {
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

async fn write(store: Arc<dyn Store>, mut author: Author) {
    while author.head.0 < EVENTS {
        let size = 1 + author.head.0 % 5;
        let left = EVENTS - author.head.0;
        let events = (0..size.min(left))
            .map(|n| {
                let text = format!("{n}");
                author.event(None, Note { about: None, text })
            })
            .collect();
        author.append(&*store, events).await;
    }
}

pub async fn every_event_comes_once_and_in_order_while_appends_race<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut tasks = JoinSet::new();
    for number in 1..=4 {
        let author = Author::create(&*store, number, &format!("agent-{number}")).await;
        // Several at once, from the start and from the middle.
        for after in [0, 0, 2, 100, 599] {
            tasks.spawn(follow(Arc::clone(&store), number, Seq(after), Seq(EVENTS)));
        }
        tasks.spawn(write(Arc::clone(&store), author));
    }
    while let Some(done) = soon(tasks.join_next()).await {
        done.unwrap();
    }
}

pub async fn it_is_woken_by_the_commit_and_by_nothing_else<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut two = Author::create(&*store, 2, "two").await;
    let mut tail = store.tail(one.agent, one.head);
    let quiet = Duration::from_millis(50);
    assert!(tokio::time::timeout(quiet, tail.next()).await.is_err());
    // It does not see the events of other agents, or refused ones.
    let events = two.turn("not", "mine");
    two.append(&*store, events).await;
    let events = one.turn("refused", "refused");
    let mut append = Append::new(one.fence, events);
    append.expected_generation = Some(99);
    assert!(store.append(append).await.is_err());
    assert!(tokio::time::timeout(quiet, tail.next()).await.is_err());
    // A wait that was given up has swallowed nothing.
    let events = one.turn("mine", "mine");
    one.append(&*store, events).await;
    let events = soon(tail.next()).await.unwrap();
    assert_eq!(events.len(), 8);
    assert_eq!(events[7].seq, one.head);
}

pub async fn an_unknown_agent_has_no_journal_to_follow<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut tail = store.tail(agent_id(1), Seq::ZERO);
    let refused = soon(tail.next()).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
}

pub async fn a_page_has_the_events_of_a_time<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    for n in 0..5 {
        // A clock that was set back: the order of the events is that of their numbers all the same.
        author.at += if n == 3 { -3_600_000 } else { 3_600_000 };
        let events = author.turn("words", "answer");
        author.append(&*store, events).await;
    }
    let all = events_of(&*store, author.agent).await;
    let (since, until) = (all[9].at, all[20].at);
    let within = |event: &&agentd_core::event::Event| event.at >= since && event.at <= until;
    let wanted: Vec<_> = all.iter().filter(within).cloned().collect();
    assert!(wanted.len() > 10 && wanted.len() < all.len());
    let mut query = ReadQuery {
        since: Some(since),
        until: Some(until),
        ..ReadQuery::all(author.agent, Seq::ZERO, 3)
    };
    let mut found = Vec::new();
    loop {
        let page = store.read(query.clone()).await.unwrap();
        found.extend(page.events);
        match page.next {
            Some(next) => query.after = next,
            None => break,
        }
    }
    assert_eq!(found, wanted);
}

pub async fn pages_of_one_agent_and_of_all_give_every_event_once<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut authors = Vec::new();
    for number in 1..=3 {
        authors.push(Author::create(&*store, number, &format!("agent-{number}")).await);
    }
    for round in 0..20 {
        for author in &mut authors {
            let events = match round % 7 {
                6 => author.reset(),
                _ => author.turn("words", "answer"),
            };
            author.append(&*store, events).await;
        }
    }
    let author = &authors[1];
    let all = events_of(&*store, author.agent).await;
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

    let mut after = Cursor::default();
    let mut found = Vec::new();
    loop {
        let page = store.read_all(after, 13).await.unwrap();
        found.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    // Each event has a cursor of its own, behind which the next one comes.
    for (index, (cursor, _)) in found.iter().enumerate() {
        let page = store.read_all(cursor.clone(), 1).await.unwrap();
        assert_eq!(page.events.first(), found.get(index + 1));
    }
    assert_eq!(found.len(), all.len() * 3);
    let last = found.last().map(|(cursor, _)| cursor.clone());
    assert_eq!(Some(store.end().await.unwrap()), last);
    let own = found.into_iter().map(|(_, event)| event);
    assert!(own.filter(|event| event.agent == author.agent).eq(all));
}

pub async fn every_commit_wakes_who_waits_for_any<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut commits = store.commits();
    let quiet = Duration::from_millis(50);
    assert!(tokio::time::timeout(quiet, commits.next()).await.is_err());
    let events = one.turn("mine", "mine");
    one.append(&*store, events).await;
    assert!(soon(commits.next()).await);
    Author::create(&*store, 2, "two").await;
    assert!(soon(commits.next()).await);
    // The end of the store is the end of the wait.
    drop(store);
    let mut more = 0;
    while soon(commits.next()).await {
        more += 1;
    }
    assert!(more <= 1, "{more} commits");
}

pub async fn a_cursor_leads_on_after_a_restart_and_new_events<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut two = Author::create(&*store, 2, "two").await;
    let mut after = Cursor::default();
    let mut seen = 0;
    for round in 0..4 {
        for author in [&mut one, &mut two] {
            let events = author.turn("words", "answer");
            author.append(&*store, events).await;
        }
        if round % 2 == 1 {
            store = subject.reopen(store).await;
        }
        let page = store.read_all(after.clone(), 1000).await.unwrap();
        assert_eq!(page.next, None);
        let expected = if round == 0 { 4 + 16 } else { 16 };
        assert_eq!(page.events.len(), expected);
        seen += page.events.len();
        after = page.events.last().unwrap().0.clone();
        // At the end there is nothing, and the same question gets the same answer.
        for _ in 0..2 {
            let page = store.read_all(after.clone(), 1000).await.unwrap();
            assert_eq!((page.events.len(), page.next), (0, None));
        }
    }
    let all = store.read_all(Cursor::default(), 1000).await.unwrap();
    assert_eq!(all.events.len(), seen);
}

pub async fn a_text_that_is_no_cursor_is_refused<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    Author::create(&*store, 1, "one").await;
    store.wait_caught_up().await.unwrap();
    let long = "7".repeat(5000);
    for text in ["no cursor", "-1", "1 OR 1", "\u{1b}[2J", &long] {
        let refused = store.read_all(Cursor::from_text(text), 10).await;
        let Err(Error::BadCursor { cursor }) = &refused else {
            panic!("{text}: {refused:?}");
        };
        assert!(text.starts_with(cursor.as_str()));
        let told = refused.unwrap_err().to_string();
        assert!(
            told.contains("start again") && !told.contains('\u{1b}'),
            "{told}"
        );
        let query = SearchQuery {
            text: "word".to_owned(),
            agent: None,
            limit: 10,
            before: Some(Cursor::from_text(text)),
        };
        let refused = store.search(query).await;
        assert!(
            matches!(refused, Err(Error::BadCursor { .. })),
            "{refused:?}"
        );
        let query = AgentQuery {
            limit: 10,
            after: Some(AgentCursor::from_text(text)),
            ..AgentQuery::default()
        };
        let refused = store.agents(query).await;
        assert!(
            matches!(refused, Err(Error::BadCursor { .. })),
            "{refused:?}"
        );
    }
}
