//! One owner at a time: a writer that has lost its fence is refused, in this process or in another, and an append
//! that is sent twice is applied once.

use crate::lab::{Author, Lab, agent_id, events_of, run, soon};
use crate::second::{Second, said};
use agentd_core::event::Body;
use agentd_core::id::{Incarnation, Seq};
use agentd_store::{
    Ack, Append, Disk, DraftChunk, Error, Fence, Options, SearchQuery, Source, SqliteStore,
    Store as _,
};
use rusqlite::Connection;
use std::time::Duration;
use tokio::task::JoinSet;

fn stale<T: std::fmt::Debug>(answer: Result<T, Error>, held: u64, current: u64) {
    let Err(Error::StaleFence {
        held: found_held,
        current: found_current,
        ..
    }) = &answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!((*found_held, *found_current), (held, current));
    assert!(answer.unwrap_err().to_string().contains("must stop"));
}

#[test]
fn a_second_owner_makes_the_first_one_stale_for_everything() {
    // claude-code#39151, #69364; adk-python#4751; goose#12321: two writers of one conversation.
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut first = Author::create(&store, 1, "one").await;
        let second = store.claim(first.agent, "second").await.unwrap().fence;
        let events = first.turn("mine", "yours");
        stale(
            store.append(Append::new(first.fence, events.clone())).await,
            1,
            2,
        );
        let chunk = DraftChunk {
            request: first.next_try(),
            offset: 0,
            bytes: b"mine".to_vec(),
        };
        stale(store.write_draft(first.fence, chunk).await, 1, 2);
        // Nothing of it is there, and the second goes on as if nothing had been.
        let ack = store.append(Append::new(second, events)).await.unwrap();
        let (from, to) = (Seq(3), Seq(10));
        assert_eq!(
            ack,
            Ack::Committed {
                first: from,
                last: to
            }
        );
        // A fence from the future is as good as one from the past.
        let event = said(second, "x");
        let fence = Fence { epoch: 9, ..second };
        stale(store.append(Append::new(fence, vec![event])).await, 9, 2);
    });
}

#[test]
fn a_second_process_makes_the_first_one_stale_and_back_again() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let mut second = Second::start(&lab.dir());
        assert_eq!(second.hear(), "open");
        assert!(second.ask("append too early").starts_with("StaleFence"));
        assert_eq!(second.ask("claim"), "2");
        assert_eq!(second.ask("append hello"), "3");
        let event = said(author.fence, "late");
        stale(
            store.append(Append::new(author.fence, vec![event])).await,
            1,
            2,
        );
        assert_eq!(store.load(author.agent).await.unwrap().state.head, Seq(3));
        author.fence = store
            .claim(author.agent, "first again")
            .await
            .unwrap()
            .fence;
        let events = vec![said(author.fence, "back")];
        assert_eq!(author.append(&store, events).await, (Seq(4), Seq(4)));
        let refused = second.ask("append late too");
        assert!(refused.starts_with("StaleFence"), "{refused}");
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn two_processes_that_fight_over_an_agent_never_interleave() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let mut second = Second::start(&lab.dir());
        assert_eq!(second.hear(), "open");
        let mut acked = 2;
        for round in 0..60 {
            // Both at the same time; then one takes it from the other.
            second.tell("append tick");
            let event = said(author.fence, "tock");
            let mine = store.append(Append::new(author.fence, vec![event])).await;
            let theirs = second.hear();
            let one_got_through = mine.is_ok() as u64 + theirs.parse::<u64>().is_ok() as u64;
            assert!(one_got_through <= 1, "{mine:?} and {theirs}");
            acked += one_got_through;
            match round % 3 {
                0 => drop(second.ask("claim")),
                1 => author.fence = store.claim(author.agent, "me").await.unwrap().fence,
                _ => {}
            }
        }
        let events = events_of(&store, author.agent).await;
        assert_eq!(events.len() as u64, acked);
        let owners: Vec<u64> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::Note(note) => note.text.split(' ').next().unwrap().parse().ok(),
                _ => None,
            })
            .collect();
        assert!(owners.is_sorted(), "{owners:?}");
        assert!(owners.len() > 40 && owners.last() > owners.first());
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn what_one_process_writes_the_other_one_indexes_once() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let author = Author::create(&store, 1, "one").await;
        let mut second = Second::start(&lab.dir());
        assert_eq!(second.hear(), "open");
        assert_eq!(second.ask("claim"), "2");
        for n in 0..50 {
            second.ask(&format!("append findable {n}"));
            if n % 5 == 0 {
                second.tell("wait_caught_up");
                store.wait_caught_up().await.unwrap();
                assert_eq!(second.hear(), "Ok(())");
            }
        }
        store.wait_caught_up().await.unwrap();
        let query = SearchQuery {
            text: "findable".to_owned(),
            agent: Some(author.agent),
            limit: 200,
            before: None,
        };
        assert_eq!(store.search(query).await.unwrap().hits.len(), 50);
    });
}

#[test]
fn many_processes_may_open_a_new_store_at_once() {
    let lab = Lab::new();
    let mut processes: Vec<Second> = (0..6).map(|_| Second::start(&lab.dir())).collect();
    let answers: Vec<String> = processes.iter_mut().map(Second::hear).collect();
    assert_eq!(answers, ["open"; 6]);
    let epochs: Vec<String> = processes.iter_mut().map(|p| p.ask("claim")).collect();
    assert_eq!(epochs, ["1", "2", "3", "4", "5", "6"]);
}

#[test]
fn a_new_store_waits_for_another_who_makes_the_same_file() {
    let lab = Lab::new();
    // Of two who both look, one is about to write: SQLite refuses the other one at once.
    std::fs::create_dir_all(lab.dir()).unwrap();
    let other = lab.journal();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = SqliteStore::open(Options {
        lock_timeout: Duration::from_millis(50),
        ..lab.options()
    });
    let refused = refused.map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::Unavailable(Disk::Locked)),
        "{refused:?}"
    );
    std::thread::scope(|scope| {
        let open = scope.spawn(|| SqliteStore::open(lab.options()).map(drop));
        // As long as the other one writes: who does not wait refuses meanwhile.
        // tidy: polls
        std::thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
        open.join().unwrap().unwrap();
    });
}

fn from(author: &mut Author, incarnation: u64, n: u64) -> Append {
    let mut append = Append::new(author.fence, author.turn("words", "answer"));
    let incarnation = Incarnation(incarnation);
    append.source = Some(Source { incarnation, n });
    append
}

#[test]
fn what_is_sent_again_is_applied_once_also_after_a_restart() {
    let lab = Lab::new();
    run(async {
        let mut store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let place = |n: u64| {
            let first = Seq(3 + (n - 1) * 8);
            (first, Seq(first.0 + 7))
        };
        for n in 1..=5 {
            let append = from(&mut author, 7, n);
            let (first, last) = place(n);
            let ack = store.append(append.clone()).await.unwrap();
            assert_eq!(ack, Ack::Committed { first, last });
            if n % 2 == 0 {
                drop(store);
                store = lab.open();
            }
            let again = Ack::Repeated {
                place: Some((first, last)),
            };
            assert_eq!(store.append(append).await.unwrap(), again);
            // One that came before: it is there, and where is not known any more.
            if n > 1 {
                let older = from(&mut author, 7, n - 1);
                let ack = store.append(older).await.unwrap();
                assert_eq!(ack, Ack::Repeated { place: None });
            }
            // Appends of others in between, without a counter, change nothing about it.
            if n == 5 {
                let events = author.reset();
                author.append(&store, events).await;
                let ack = store.append(from(&mut author, 7, 5)).await.unwrap();
                assert_eq!(ack, again);
            }
        }
        store.wait_caught_up().await.unwrap();
        let state = store.load(author.agent).await.unwrap().state;
        assert_eq!(state.head, Seq(2 + 5 * 8 + 2));
    });
}

#[test]
fn the_counter_survives_snapshots_and_a_long_time_without_it() {
    let lab = Lab::new();
    run(async {
        let options = || Options {
            snapshot_every: 10,
            ..lab.options()
        };
        let store = SqliteStore::open(options()).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        store.append(from(&mut author, 3, 1)).await.unwrap();
        store.append(from(&mut author, 3, 2)).await.unwrap();
        for _ in 0..20 {
            let events = author.turn("without", "a counter");
            author.append(&store, events).await;
            store.wait_caught_up().await.unwrap();
        }
        drop(store);
        let store = SqliteStore::open(options()).unwrap();
        let again = store.append(from(&mut author, 3, 2)).await.unwrap();
        let place = Some((Seq(11), Seq(18)));
        assert_eq!(again, Ack::Repeated { place });
        let refused = store.append(from(&mut author, 3, 4)).await;
        assert!(matches!(
            refused,
            Err(Error::OutOfOrder { expected: 3, .. })
        ));
    });
}

#[test]
fn a_counter_that_skips_or_an_incarnation_that_is_over_is_refused() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let order = |answer: Result<Ack, Error>| match answer {
            Err(Error::OutOfOrder { sent, expected, .. }) => (sent, expected),
            other => panic!("{other:?}"),
        };
        assert_eq!(order(store.append(from(&mut author, 2, 2)).await), (2, 1));
        assert_eq!(order(store.append(from(&mut author, 2, 0)).await), (0, 1));
        store.append(from(&mut author, 2, 1)).await.unwrap();
        assert_eq!(order(store.append(from(&mut author, 2, 3)).await), (3, 2));
        assert_eq!(order(store.append(from(&mut author, 2, 0)).await), (0, 2));
        // A newer process begins at one; then the older one has nothing to say any more.
        assert_eq!(order(store.append(from(&mut author, 3, 2)).await), (2, 1));
        store.append(from(&mut author, 3, 1)).await.unwrap();
        for n in [1, 2] {
            let refused = store.append(from(&mut author, 2, n)).await;
            assert!(matches!(
                refused,
                Err(Error::StaleIncarnation {
                    sent: Incarnation(2),
                    current: Incarnation(3),
                    ..
                })
            ));
        }
        // What was refused has left nothing behind.
        let state = store.load(author.agent).await.unwrap().state;
        assert_eq!(state.head, Seq(2 + 16));
    });
}

#[test]
fn of_two_who_expect_the_same_generation_one_gets_it() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        for round in 0..20 {
            let expected = store.load(author.agent).await.unwrap().state.generation();
            let mut both = JoinSet::new();
            for _ in 0..2 {
                let mut append = Append::new(author.fence, author.reset());
                append.expected_generation = Some(expected);
                let store = store.clone();
                both.spawn(async move { store.append(append).await });
            }
            let mut answers = [soon(both.join_next()).await, soon(both.join_next()).await]
                .map(|answer| answer.unwrap().unwrap());
            answers.sort_by_key(Result::is_err);
            assert!(answers[0].is_ok(), "round {round}");
            let Err(Error::GenerationChanged {
                expected: asked,
                current,
                ..
            }) = answers[1]
            else {
                panic!("{:?}", answers[1]);
            };
            assert_eq!((asked, current), (expected, expected + 1));
        }
    });
}

#[test]
fn a_newer_schema_is_refused_and_left_untouched() {
    let lab = Lab::new();
    run(async {
        Author::create(&lab.open(), 1, "one").await;
        let file = lab.dir().join("journal.db");
        for mode in ["WAL", "DELETE"] {
            let journal = lab.journal();
            journal
                .pragma_update(None, "journal_mode", mode)
                .and_then(|()| journal.pragma_update(None, "user_version", 99))
                .unwrap();
            drop(journal);
            let before = std::fs::read(&file).unwrap();
            let refused = SqliteStore::open(lab.options()).map(drop).unwrap_err();
            let is_newer = matches!(
                refused,
                Error::NewerSchema {
                    found: 99,
                    known: 4
                }
            );
            assert!(is_newer, "{refused:?}");
            assert!(refused.to_string().contains("upgrade agentd"));
            assert_eq!(std::fs::read(&file).unwrap(), before);
        }
        // A newer cache is no reason to refuse anything.
        lab.journal()
            .pragma_update(None, "user_version", 4)
            .unwrap();
        lab.derived()
            .pragma_update(None, "user_version", 99)
            .unwrap();
        let store = lab.open();
        store.wait_caught_up().await.unwrap();
        assert_eq!(store.load(agent_id(1)).await.unwrap().state.name, "one");
    });
}

#[test]
fn a_locked_file_is_told_and_work_goes_on_when_it_is_free() {
    let lab = Lab::new();
    run(async {
        let options = || Options {
            lock_timeout: Duration::from_millis(100),
            ..lab.options()
        };
        let store = SqliteStore::open(options()).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        store.wait_caught_up().await.unwrap();
        for lock in ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
            let other = lab.journal();
            other.execute_batch(lock).unwrap();
            let events = author.turn("hello", "there");
            let refused = store
                .append(Append::new(author.fence, events.clone()))
                .await;
            let Err(error @ Error::NotCommitted(Disk::Locked)) = &refused else {
                panic!("{refused:?}");
            };
            assert!(error.to_string().contains("close it"), "{error}");
            let refused = store.claim(author.agent, "next").await;
            assert!(matches!(refused, Err(Error::NotCommitted(Disk::Locked))));
            // Reading is still possible.
            assert_eq!(
                store.load(author.agent).await.unwrap().state.head,
                author.head
            );
            other.execute_batch("ROLLBACK").unwrap();
            author.append(&store, events).await;
        }
        drop(store);

        // Another connection has locked the file exclusively.
        let other: Connection = lab.journal();
        other
            .pragma_update(None, "locking_mode", "EXCLUSIVE")
            .unwrap();
        other.execute_batch("BEGIN EXCLUSIVE; COMMIT").unwrap();
        let refused = SqliteStore::open(options()).map(drop).unwrap_err();
        assert!(
            matches!(refused, Error::Unavailable(Disk::Locked)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("close it"));
        drop(other);
        let store = SqliteStore::open(options()).unwrap();
        assert_eq!(
            store.load(author.agent).await.unwrap().state.head,
            author.head
        );
    });
}
