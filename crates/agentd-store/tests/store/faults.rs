//! A disk that fails: the store acknowledges nothing that was not written, every caller learns whether its append is
//! on disk, and work continues once the disk works again.

use crate::lab::{Author, Lab, agent_id, events_of, long, run, soon};
use agentd_core::event::{Body, Note};
use agentd_core::id::{Incarnation, Seq};
use agentd_core::time::Timestamp;
use agentd_store::{
    Ack, Append, Disk, DraftAck, DraftChunk, Error, Import, Options, SearchQuery, Source,
    SqliteStore, Store as _,
};
use agentd_testkit::faulty_disk::{Fault, FaultyDisk, FileKind, How, Op};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;

/// A store on a disk that fails on request.
struct Bench {
    lab: Lab,
    disk: FaultyDisk,
}

impl Bench {
    fn new() -> Self {
        Self {
            lab: Lab::new(),
            disk: FaultyDisk::new().unwrap(),
        }
    }

    fn options(&self) -> Options {
        Options {
            vfs: Some(self.disk.vfs().to_owned()),
            lock_timeout: Duration::from_millis(200),
            ..self.lab.options()
        }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.options()).unwrap()
    }

    /// What a process would find if this one died at this moment.
    async fn notes_after_crash(&self) -> BTreeMap<String, usize> {
        let copy = self.lab.copy();
        let store = copy.open();
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
        notes(&store).await
    }
}

/// How often each note occurs in the journals.
async fn notes(store: &SqliteStore) -> BTreeMap<String, usize> {
    let mut notes = BTreeMap::new();
    let mut after = agentd_store::Cursor::default();
    loop {
        let page = store.read_all(after, 1000).await.unwrap();
        for (_, event) in page.events {
            if let Body::Note(note) = event.body {
                *notes.entry(note.text).or_default() += 1;
            }
        }
        match page.next {
            Some(next) => after = next,
            None => return notes,
        }
    }
}

/// A producer with an agent of its own.
struct Producer {
    author: Author,
    n: u64,
}

impl Producer {
    async fn new(store: &SqliteStore, number: u64) -> Self {
        let author = Author::create(store, number, &format!("agent-{number}")).await;
        Self { author, n: 0 }
    }

    fn note(&self) -> String {
        format!("{} says {}", self.author.agent, self.n)
    }

    /// Its next append.
    fn append(&mut self) -> Append {
        let note = Note {
            about: None,
            text: self.note(),
        };
        let mut append = Append::new(self.author.fence, vec![self.author.event(None, note)]);
        append.source = Some(Source {
            incarnation: Incarnation(1),
            n: self.n,
        });
        append
    }
}

/// A fault, the error that the store must report for it, and the advice in that error.
#[derive(Clone, Copy, Debug)]
struct Case {
    fault: Fault,
    is_right: fn(&Disk) -> bool,
    next_step: &'static str,
}

fn cases() -> Vec<Case> {
    let full: fn(&Disk) -> bool = |disk| matches!(disk, Disk::Full);
    let io: fn(&Disk) -> bool = |disk| matches!(disk, Disk::Io(_));
    let read_only: fn(&Disk) -> bool = |disk| matches!(disk, Disk::ReadOnly);
    let locked: fn(&Disk) -> bool = |disk| matches!(disk, Disk::Locked);
    let log = FileKind::Wal;
    let kinds = [
        (
            Fault::new(log, Op::Write, How::NoSpace),
            full,
            "free some space",
        ),
        (
            Fault::new(log, Op::Sync, How::NoSpace),
            full,
            "free some space",
        ),
        (Fault::new(log, Op::Write, How::Io), io, "check it"),
        (
            Fault::new(log, Op::Write, How::Short { bytes: 0 }),
            io,
            "check it",
        ),
        (
            Fault::new(log, Op::Write, How::Short { bytes: 1000 }),
            io,
            "check it",
        ),
        // It was written, and the disk says that it was not.
        (
            Fault::new(log, Op::Write, How::Short { bytes: usize::MAX }),
            io,
            "check it",
        ),
        (Fault::new(log, Op::Sync, How::Io), io, "check it"),
        (
            Fault::new(log, Op::Write, How::ReadOnly),
            read_only,
            "make it writable",
        ),
        (
            Fault::new(FileKind::Database, Op::WriteLock, How::Busy),
            locked,
            "close it",
        ),
    ];
    let mut cases = Vec::new();
    for (fault, is_right, next_step) in kinds {
        // At once and later; once, a few times, and until it is mended.
        let plans = [(0, None), (1, Some(1)), (20, None), (3, None), (4, Some(3))];
        for (after, times) in plans.into_iter().take(if long() { 5 } else { 3 }) {
            let fault = Fault {
                after,
                times,
                ..fault
            };
            cases.push(Case {
                fault,
                is_right,
                next_step,
            });
        }
    }
    cases
}

fn disk_of(error: &Error) -> &Disk {
    match error {
        Error::NotCommitted(disk) | Error::Uncertain(disk) | Error::Unavailable(disk) => disk,
        other => panic!("not the disk's: {other}"),
    }
}

#[test]
fn sixty_four_producers_are_told_the_truth_whatever_fails() {
    run(async {
        let bench = Bench::new();
        let store = bench.open();
        let mut producers = Vec::new();
        for number in 1..=64 {
            producers.push(Producer::new(&store, number).await);
        }
        let (mut acked, mut refused, mut doubtful) = (0, 0, 0);
        for case in cases() {
            store.wait_caught_up().await.unwrap();
            bench.disk.fail(case.fault);
            let mut sending = JoinSet::new();
            for (index, producer) in producers.iter_mut().enumerate() {
                producer.n += 1;
                let (store, append) = (store.clone(), producer.append());
                sending.spawn(async move { (index, store.append(append).await) });
            }
            let mut answers = BTreeMap::new();
            while let Some(answer) = soon(sending.join_next()).await {
                let (index, answer) = answer.unwrap();
                answers.insert(index, answer);
            }
            // A process that dies now leaves what was said to be there, and not what was said not
            // to be.
            let found = bench.notes_after_crash().await;
            for (index, producer) in producers.iter().enumerate() {
                let times = found.get(&producer.note()).copied().unwrap_or(0);
                match &answers[&index] {
                    Ok(Ack::Committed { .. }) => {
                        acked += 1;
                        assert_eq!(times, 1, "{case:?}");
                    }
                    Ok(repeated) => panic!("{repeated:?} of what was never sent"),
                    Err(error) => {
                        match error {
                            Error::Uncertain(_) => doubtful += 1,
                            _ => {
                                refused += 1;
                                assert_eq!(times, 0, "{case:?}: {error}");
                            }
                        }
                        assert!((case.is_right)(disk_of(error)), "{case:?}: {error}");
                        assert!(error.to_string().contains(case.next_step), "{error}");
                    }
                }
            }
            // The disk works again. The producers only send their appends again.
            bench.disk.heal();
            let mut again = JoinSet::new();
            for producer in &mut producers {
                let (store, append) = (store.clone(), producer.append());
                again.spawn(async move { store.append(append).await });
            }
            while let Some(answer) = soon(again.join_next()).await {
                answer.unwrap().unwrap();
            }
            let found = notes(&store).await;
            for producer in &producers {
                assert_eq!(found[&producer.note()], 1, "{case:?}");
            }
        }
        println!("{acked} acknowledged, {refused} refused, {doubtful} in doubt");
        assert!(acked > 0 && refused > 0 && doubtful > 0);
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
        let before = notes(&store).await;
        drop(store);
        let store = bench.lab.open();
        assert_eq!(notes(&store).await, before);
        assert!(before.values().all(|times| *times == 1));
        assert_eq!(before.len(), cases().len() * 64);
    });
}

/// Waits until the disk has begun to delay an operation.
async fn until_delayed(disk: &FaultyDisk, before: u64) {
    while disk.counts().faults == before {
        // tidy: polls for the fault to fire
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn in_one_group_everybody_hears_what_became_of_him() {
    // Everything below shares one commit, which fails: at its write, or at its sync.
    for (fault, certain) in [
        (Fault::new(FileKind::Wal, Op::Write, How::NoSpace), true),
        (Fault::new(FileKind::Wal, Op::Sync, How::Io).times(1), true),
        (Fault::new(FileKind::Wal, Op::Sync, How::Io), false),
    ] {
        run(async {
            let bench = Bench::new();
            let store = bench.open();
            let mut first = Producer::new(&store, 1).await;
            let mut second = Producer::new(&store, 2).await;
            let mut third = Producer::new(&store, 3).await;
            let mut fourth = Producer::new(&store, 4).await;
            let mut fifth = Producer::new(&store, 5).await;
            let mut sixth = Producer::new(&store, 6).await;
            fifth.n = 1;
            store.append(fifth.append()).await.unwrap();
            store.wait_caught_up().await.unwrap();

            // One commit takes its time, and the others pile up behind it.
            let before = bench.disk.counts().faults;
            let slow = How::Slow(Duration::from_millis(400));
            bench
                .disk
                .fail(Fault::new(FileKind::Wal, Op::Sync, slow).times(1));
            first.n = 1;
            let (one, append) = (store.clone(), first.append());
            let slowly = tokio::spawn(async move { one.append(append).await });
            soon(until_delayed(&bench.disk, before)).await;
            bench.disk.fail(fault);

            let mut waiting = JoinSet::new();
            let mut send = |name: &'static str, append: Append| {
                let store = store.clone();
                waiting.spawn(async move { (name, store.append(append).await.map(drop)) });
            };
            second.n = 1;
            send("good", second.append());
            let mut stale = third.append();
            stale.fence.epoch = 0;
            send("stale fence", stale);
            send("repeated", fifth.append());
            let mut early = first.append();
            early.source = Some(Source {
                incarnation: Incarnation(1),
                n: 9,
            });
            send("out of order", early);
            let mut taken = Author::new(3, third.author.fence);
            send(
                "name taken",
                Append::new(third.author.fence, taken.created("agent-1")),
            );
            // These two are one and the same.
            fourth.n = 1;
            send("good twice", fourth.append());
            send("good twice", fourth.append());
            let chunk = DraftChunk {
                request: sixth.author.next_try(),
                offset: 0,
                bytes: b"draft".to_vec(),
            };
            let (other, fence) = (store.clone(), sixth.author.fence);
            waiting
                .spawn(async move { ("draft", other.write_draft(fence, chunk).await.map(drop)) });
            let other = store.clone();
            waiting
                .spawn(async move { ("claim", other.claim(agent_id(7), "new").await.map(drop)) });

            soon(slowly).await.unwrap().unwrap();
            while let Some(answer) = soon(waiting.join_next()).await {
                let (name, answer) = answer.unwrap();
                let right = match name {
                    "stale fence" => matches!(answer, Err(Error::StaleFence { .. })),
                    "repeated" => answer.is_ok(),
                    "out of order" => matches!(answer, Err(Error::OutOfOrder { .. })),
                    // By then others in the group have changed: what it was refused for may not be.
                    "name taken" => matches!(
                        answer,
                        Err(Error::NameTaken { .. } | Error::NotCommitted(_) | Error::Uncertain(_))
                    ),
                    "good twice" if certain => {
                        matches!(answer, Err(Error::NotCommitted(_) | Error::Uncertain(_)))
                    }
                    _ if certain => matches!(answer, Err(Error::NotCommitted(_))),
                    _ => matches!(answer, Err(Error::Uncertain(_))),
                };
                assert!(right, "{fault:?}: {name} was told {answer:?}");
            }
            let found = bench.notes_after_crash().await;
            assert_eq!(found[&first.note()], 1);
            if certain {
                assert!(!found.contains_key(&second.note()));
                assert!(!found.contains_key(&fourth.note()));
            }
            bench.disk.heal();
            store.append(second.append()).await.unwrap();
            store.append(fourth.append()).await.unwrap();
            let found = notes(&store).await;
            assert!(found.values().all(|times| *times == 1), "{found:?}");
            assert_eq!(found.len(), 4);
        });
    }
}

#[test]
fn a_draft_that_was_not_kept_can_be_sent_again() {
    run(async {
        let bench = Bench::new();
        let store = bench.open();
        let mut author = Author::create(&store, 1, "one").await;
        let request = author.next_try();
        let chunk = |offset, text: &str| DraftChunk {
            request,
            offset,
            bytes: text.as_bytes().to_vec(),
        };
        store
            .write_draft(author.fence, chunk(0, "one "))
            .await
            .unwrap();
        let full = Fault::new(FileKind::Wal, Op::Write, How::NoSpace);
        bench.disk.fail(full);
        let refused = store.write_draft(author.fence, chunk(4, "two ")).await;
        assert!(
            matches!(refused, Err(Error::NotCommitted(Disk::Full))),
            "{refused:?}"
        );
        bench.disk.heal();
        let kept = store.write_draft(author.fence, chunk(4, "two ")).await;
        assert_eq!(kept.unwrap(), DraftAck::Kept);
        // An end that fails ends nothing.
        bench.disk.fail(full);
        let mut append = Append::new(author.fence, author.turn("x", "y"));
        append.ends = Some(request);
        assert!(store.append(append).await.is_err());
        bench.disk.heal();
        let kept = store.write_draft(author.fence, chunk(8, "three")).await;
        assert_eq!(kept.unwrap(), DraftAck::Kept);
        let draft = store.draft(author.agent).await.unwrap().unwrap();
        assert_eq!(draft.bytes, b"one two three");
    });
}

#[test]
fn a_disk_that_does_not_read_is_told_and_forgiven() {
    run(async {
        let bench = Bench::new();
        let store = bench.open();
        let mut author = Author::create(&store, 1, "one").await;
        for n in 0..50 {
            let events = author.tool_turn(&format!("words {n}"), &"output ".repeat(2000), "done");
            author.append(&store, events).await;
        }
        drop(store);
        // No cache contains anything yet.
        let store = bench.open();
        bench
            .disk
            .fail(Fault::new(FileKind::Any, Op::Read, How::Io));
        let loaded = store.load(author.agent).await;
        assert!(
            matches!(loaded, Err(Error::Unavailable(Disk::Io(_)))),
            "{loaded:?}"
        );
        let events = author.turn("more", "more");
        let refused = store
            .append(Append::new(author.fence, events.clone()))
            .await;
        assert!(
            matches!(refused, Err(Error::NotCommitted(Disk::Io(_)))),
            "{refused:?}"
        );
        bench.disk.heal();
        assert_eq!(
            store.load(author.agent).await.unwrap().state.head,
            author.head
        );
        author.append(&store, events).await;
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn a_checkpoint_that_fails_costs_nobody_anything() {
    run(async {
        let bench = Bench::new();
        let store = bench.open();
        let mut author = Author::create(&store, 1, "one").await;
        for how in [How::NoSpace, How::Io, How::ReadOnly] {
            for op in [Op::Write, Op::Sync] {
                bench.disk.fail(Fault::new(FileKind::Database, op, how));
            }
            // More than the log may hold before it is moved into the file.
            for _ in 0..60 {
                let noise: String = (0..30_000)
                    .map(|n| char::from(b'a' + (n * n % 26) as u8))
                    .collect();
                let events = (0..10)
                    .map(|_| {
                        author.event(
                            None,
                            Note {
                                about: None,
                                text: noise[..8000].to_owned(),
                            },
                        )
                    })
                    .collect();
                author.append(&store, events).await;
            }
            bench.disk.heal();
        }
        assert!(bench.disk.counts_of(FileKind::Database).faults > 0);
        drop(store);
        let store = bench.lab.open();
        assert_eq!(
            events_of(&store, author.agent).await.len() as u64,
            author.head.0
        );
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn a_purge_that_meets_a_bad_disk_has_not_happened_or_goes_on_to_its_end() {
    run(async {
        let at = Timestamp::from_millis(1);
        let (mut done, mut undone) = (0, 0);
        for after in (0..120).step_by(4) {
            let bench = Bench::new();
            let store = bench.open();
            let mut author = Author::create(&store, 1, "one").await;
            let events = author.turn("findable", "answer");
            author.append(&store, events).await;
            let events = author.reset();
            author.append(&store, events).await;
            store.wait_caught_up().await.unwrap();
            let before = store.load(author.agent).await.unwrap();
            let full = Fault::new(FileKind::Wal, Op::Write, How::NoSpace);
            bench.disk.fail(full.after(after).times(2));
            let purged = soon(store.purge(author.fence, author.first, at)).await;
            bench.disk.heal();
            store.wait_caught_up().await.unwrap();
            let query = SearchQuery {
                text: "findable".to_owned(),
                agent: None,
                limit: 5,
                before: None,
            };
            let hits = store.search(query).await.unwrap().hits.len();
            match purged {
                Ok(purge) => {
                    done += 1;
                    assert_eq!((purge.events, hits), (2, 0));
                }
                Err(error) => {
                    undone += 1;
                    assert!(matches!(disk_of(&error), Disk::Full), "{error}");
                    assert_eq!(hits, 1);
                    assert_eq!(store.load(author.agent).await.unwrap(), before);
                }
            }
            assert!(store.verify(None).await.unwrap().is_clean());
        }
        assert!(done > 0 && undone > 0, "{done} done, {undone} not");
    });
}

#[test]
fn a_purge_that_a_process_could_not_finish_is_finished_by_the_next() {
    run(async {
        let bench = Bench::new();
        let mut author;
        {
            let store = bench.open();
            author = Author::create(&store, 1, "one").await;
            for _ in 0..400 {
                let events = author.turn("findable", "answer");
                author.append(&store, events).await;
            }
            let events = author.reset();
            author.append(&store, events).await;
            store.wait_caught_up().await.unwrap();
            // It begins, and then the disk takes nothing more.
            let mut tail = store.tail(author.agent, author.head);
            let slow = How::Slow(Duration::from_millis(200));
            bench.disk.fail(Fault::new(FileKind::Wal, Op::Sync, slow));
            let purging = tokio::spawn({
                let (store, fence, first) = (store.clone(), author.fence, author.first);
                async move { store.purge(fence, first, Timestamp::from_millis(1)).await }
            });
            let noted = soon(tail.next()).await.unwrap();
            assert!(matches!(noted[0].body, Body::Purged(_)));
            bench
                .disk
                .fail(Fault::new(FileKind::Any, Op::Write, How::NoSpace));
            purging.abort();
            drop(purging.await);
            drop(tail);
        }
        bench.disk.heal();
        let left: i64 = bench
            .lab
            .journal()
            .query_row("SELECT count(*) FROM purging", [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 1);
        let store = bench.open();
        let looked = async {
            loop {
                let events = events_of(&store, author.agent).await;
                let words = |body: &Body| matches!(body, Body::Prompt(_) | Body::MessageAdded(_));
                if !events.iter().any(|event| words(&event.body)) {
                    break;
                }
                // tidy: polls for the words to go
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(looked).await;
        store.wait_caught_up().await.unwrap();
        let query = SearchQuery {
            text: "findable OR answer".to_owned(),
            agent: None,
            limit: 5,
            before: None,
        };
        assert_eq!(store.search(query).await.unwrap().hits.len(), 0);
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn an_import_that_fails_leaves_everything_as_it_was() {
    run(async {
        let full = Fault::new(FileKind::Wal, Op::Write, How::NoSpace);
        let bench = Bench::new();
        let store = bench.open();
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.turn("words", "answer");
        author.append(&store, events).await;
        let other = Bench::new();
        let shelf = Lab::new();
        let path = shelf.dir().with_extension("export");
        let file = std::fs::File::create(&path).unwrap();
        store.export(author.agent, Box::new(file)).await.unwrap();
        let empty = other.open();
        other.disk.fail(full);
        let file = std::fs::File::open(&path).unwrap();
        let order = Import::at(Timestamp::from_millis(1));
        let refused = empty.import(Box::new(file), order.clone()).await;
        assert!(
            matches!(refused, Err(Error::NotCommitted(Disk::Full))),
            "{refused:?}"
        );
        let nothing = empty.load(author.agent).await;
        assert!(matches!(nothing, Err(Error::NoSuchAgent { .. })));
        other.disk.heal();
        let file = std::fs::File::open(&path).unwrap();
        empty.import(Box::new(file), order).await.unwrap();
        let there = empty.load(author.agent).await.unwrap();
        let exported = store.load(author.agent).await.unwrap();
        assert!(there.state.is_held());
        assert_eq!(there.state.head, exported.state.head.next());
        assert_eq!(there.window, exported.window);
    });
}

#[test]
fn a_store_that_cannot_be_opened_says_why_and_opens_once_it_can() {
    run(async {
        let bench = Bench::new();
        // Nothing is there yet, and no room for it.
        bench
            .disk
            .fail(Fault::new(FileKind::Any, Op::Write, How::NoSpace));
        let refused = SqliteStore::open(bench.options()).map(drop).unwrap_err();
        assert!(matches!(disk_of(&refused), Disk::Full), "{refused}");
        bench.disk.heal();
        let mut author = Author::create(&bench.open(), 1, "one").await;

        bench
            .disk
            .fail(Fault::new(FileKind::Database, Op::Open, How::Io));
        let refused = SqliteStore::open(bench.options()).map(drop).unwrap_err();
        assert!(
            matches!(disk_of(&refused), Disk::CannotOpen(_)),
            "{refused}"
        );
        assert!(refused.to_string().contains("check the state directory"));
        bench.disk.heal();

        // The file system was mounted for reading only.
        for op in [Op::Open, Op::Write, Op::Truncate, Op::Delete] {
            bench
                .disk
                .fail(Fault::new(FileKind::Any, op, How::ReadOnly));
        }
        match SqliteStore::open(bench.options()) {
            Err(refused) => assert!(
                matches!(disk_of(&refused), Disk::ReadOnly | Disk::CannotOpen(_)),
                "{refused}"
            ),
            Ok(store) => {
                let events = author.turn("x", "y");
                let refused = store
                    .append(Append::new(author.fence, events))
                    .await
                    .unwrap_err();
                assert!(matches!(disk_of(&refused), Disk::ReadOnly), "{refused}");
                assert!(refused.to_string().contains("make it writable"));
                // What is there can be read.
                assert_eq!(store.load(author.agent).await.unwrap().state.head, Seq(2));
                bench.disk.heal();
                let events = author.turn("x", "y");
                author.append(&store, events).await;
            }
        }
        bench.disk.heal();
        let store = bench.open();
        let events = author.turn("x", "y");
        author.append(&store, events).await;

        // A file where the directory should be.
        let file = bench.lab.dir().join("journal.db");
        let refused = SqliteStore::open(Options::new(file)).map(drop).unwrap_err();
        assert!(matches!(disk_of(&refused), Disk::Dir(_)), "{refused}");
    });
}
