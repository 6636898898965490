//! One owner at a time: a writer that has lost its fence is refused, in this process or in another, and an append
//! that is sent twice is applied once.

use crate::author::said;
use crate::lab::{Author, Lab, agent_id, events_of, run};
use crate::second::Second;
use agentd_core::event::Body;
use agentd_core::id::Seq;
use agentd_store::{Append, Disk, Error, Options, SearchQuery, SqliteStore, Store as _};
use rusqlite::Connection;
use std::time::Duration;

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
                    known: 6
                }
            );
            assert!(is_newer, "{refused:?}");
            assert!(refused.to_string().contains("upgrade agentd"));
            assert_eq!(std::fs::read(&file).unwrap(), before);
        }
        // A newer cache is no reason to refuse anything.
        lab.journal()
            .pragma_update(None, "user_version", 6)
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
