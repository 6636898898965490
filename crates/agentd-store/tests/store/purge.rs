//! Purge: what was said is gone from every byte of the directory, and nothing else is.

use crate::lab::{Author, Lab, events_of, long, run, soon};
use crate::second::Second;
use agentd_core::event::{Body, Grant, Purpose, RequestSent, TurnStarted};
use agentd_core::id::ConversationId;
use agentd_core::time::Timestamp;
use agentd_store::{Append, DraftAck, DraftChunk, Purge, SearchQuery, SqliteStore, Store as _};
use std::path::Path;
use std::time::{Duration, Instant};

const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Words that are told apart by how they end, so that one look finds any of them. They begin as
/// differently as can be: an index that keeps sorted words leaves out what they share.
struct Words {
    mark: &'static str,
    made: u64,
}

const FIRST: &str = "zqxjvk";
const OTHERS: &str = "jjqvzx";

impl Words {
    fn new(mark: &'static str) -> Self {
        Self { mark, made: 0 }
    }

    fn next(&mut self) -> String {
        self.made += 1;
        let mut word = String::new();
        let mut x = self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..8 {
            x ^= x >> 29;
            x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word.push(char::from(b'a' + ((x >> 40) % 26) as u8));
        }
        word + self.mark
    }

    /// So many of them, no two alike: it cannot be packed into nothing.
    fn text(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.next()).collect();
        words.join(" ")
    }
}

/// Where words with this ending still stand: in the bytes of the files, or in anything that can be
/// unpacked from them, wherever it begins and whether or not a table knows of it.
fn traces(dir: &Path, mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        for at in places(&bytes, mark.as_bytes()) {
            found.push(format!("{file} at {at}"));
        }
        for at in places(&bytes, &[0x28, 0xb5, 0x2f, 0xfd]) {
            let mut text = Vec::new();
            let packed = zstd::stream::read::Decoder::new(&bytes[at..]).unwrap();
            // What stands behind it, or a part of it that is gone, is an error; what came before
            // that is looked at all the same.
            let _cut = std::io::Read::read_to_end(&mut packed.single_frame(), &mut text);
            if !places(&text, mark.as_bytes()).is_empty() {
                found.push(format!("{file}, packed at {at}"));
            }
        }
    }
    found
}

fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let first = wanted[0];
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    let is_there = |at: &usize| bytes[*at..].starts_with(wanted);
    starts.map(|(at, _)| at).filter(is_there).collect()
}

/// The directory as it is now, looked at without touching what SQLite has locked.
fn traces_now(lab: &Lab, mark: &str) -> Vec<String> {
    let copy = lab.copy();
    traces(&copy.dir(), mark)
}

async fn hits(store: &SqliteStore, word: &str) -> usize {
    let query = SearchQuery {
        text: word.to_owned(),
        agent: None,
        limit: 10,
        before: None,
    };
    store.search(query).await.unwrap().hits.len()
}

/// Streams a reply in pieces, as a runtime does, and then says it.
async fn stream_and_say(store: &SqliteStore, author: &mut Author, words: &mut Words, size: usize) {
    let answer = words.text(size);
    let request = author.next_try();
    let mut offset = 0;
    for piece in answer.as_bytes().chunks(700) {
        let chunk = DraftChunk {
            request,
            offset,
            bytes: piece.to_vec(),
        };
        store.write_draft(author.fence, chunk).await.unwrap();
        offset += piece.len() as u64;
    }
    // Most of what tools say packs well, and then many share a page.
    let output = words.text(3 + size * 4) + &"and so on, and so on. ".repeat(400);
    let events = author.tool_turn(&words.text(4), &output, &answer);
    let mut append = Append::new(author.fence, events);
    append.ends = Some(request);
    store.append(append).await.unwrap();
}

async fn append(
    store: &SqliteStore,
    author: &mut Author,
    events: Vec<agentd_core::event::NewEvent>,
) {
    author.append(store, events).await;
}

async fn purge(store: &SqliteStore, author: &Author, conversation: ConversationId) -> Purge {
    soon(store.purge(author.fence, conversation, AT))
        .await
        .unwrap()
}

/// Endings of the words of six agents, whose conversations are purged one after the other.
const MARKS: [&str; 6] = ["zqxjvk", "wkzvqj", "qvjxzw", "vwqkjz", "kxzwvq", "xjwzkq"];

#[test]
fn no_byte_of_the_directory_holds_the_words_any_more() {
    let lab = Lab::new();
    let mut options = lab.options();
    options.snapshot_every = 50;
    let mut others = Words::new(OTHERS);
    run(async {
        let store = SqliteStore::open(options).unwrap();
        let mut authors = Vec::new();
        for (n, mark) in (1..).zip(MARKS) {
            let author = Author::create(&store, n, &format!("agent-{n}")).await;
            authors.push((author, Words::new(mark), mark));
        }
        // Sizes from a line to many pages, in no order, all agents in between each other: so pages
        // fill up, split and join, and words move about in them.
        for n in 0..25 {
            for (index, (author, words, _)) in authors.iter_mut().enumerate() {
                let size = 1 + (n * 37 + index * 11) % 60;
                stream_and_say(&store, author, words, size).await;
            }
        }
        for (author, ..) in &mut authors {
            let events = author.reset();
            append(&store, author, events).await;
            stream_and_say(&store, author, &mut others, 30).await;
        }
        store.wait_caught_up().await.unwrap();

        for (author, _, mark) in &mut authors {
            let word = Words::new(mark).next();
            assert_eq!(hits(&store, &word).await, 1);
            assert!(!traces_now(&lab, mark).is_empty());
            let old = author.first;
            let done = purge(&store, author, old).await;
            assert!(done.events > 90 && done.blobs > 15, "{done:?}");
            // Each purge meets whatever the ones before it have moved about.
            assert_eq!(traces_now(&lab, mark), [""; 0]);
            store.wait_caught_up().await.unwrap();
            assert_eq!(hits(&store, &word).await, 0);
            let events = events_of(&store, author.agent).await;
            let gone = events.iter().filter(|e| matches!(e.body, Body::Gone(_)));
            assert_eq!(gone.count() as u64, done.events);
            // Life goes on, in the room that was made.
            stream_and_say(&store, author, &mut others, 50).await;
        }
        assert!(store.verify(None).await.unwrap().is_clean());
        assert_eq!(hits(&store, &Words::new(OTHERS).next()).await, 1);
    });
    for mark in MARKS {
        assert_eq!(traces(&lab.dir(), mark), [""; 0]);
    }
    // Not because nothing can be found.
    assert!(!traces(&lab.dir(), OTHERS).is_empty());
}

#[test]
fn a_text_that_somebody_else_uses_stays() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let shared = Words::new(OTHERS).text(2000);
        let own = Words::new(FIRST).text(2000);
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.tool_turn("look", &shared, "seen");
        append(&store, &mut author, events).await;
        let events = author.tool_turn("look", &own, "seen");
        append(&store, &mut author, events).await;
        let old = author.conversation;
        let events = author.reset();
        append(&store, &mut author, events).await;
        let events = author.tool_turn("look again", &shared, "still there");
        append(&store, &mut author, events).await;

        let done = purge(&store, &author, old).await;
        assert_eq!(done.blobs, 1);
        assert_eq!(traces_now(&lab, FIRST), [""; 0]);
        let loaded = store.load(author.agent).await.unwrap();
        let window = serde_json::to_string(&events_of(&store, author.agent).await).unwrap();
        assert!(window.contains(&shared));
        assert_eq!(loaded.window.items().len(), 4);
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn others_go_on_while_a_purge_waits_for_a_reader_of_the_log() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        let mut two = Author::create(&store, 2, "two").await;
        let events = one.turn(&Words::new(FIRST).text(50), "answer");
        append(&store, &mut one, events).await;
        let old = one.conversation;
        let events = one.reset();
        append(&store, &mut one, events).await;
        store.wait_caught_up().await.unwrap();

        // A slow reader still reads the journal as it was.
        let reader = lab.journal();
        reader.execute_batch("BEGIN").unwrap();
        let count = |reader: &rusqlite::Connection| -> i64 {
            let sql = "SELECT count(*) FROM event WHERE body IS NOT NULL";
            reader.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let before = count(&reader);
        let purging = tokio::spawn({
            let store = store.clone();
            let fence = one.fence;
            async move { store.purge(fence, old, AT).await }
        });
        let mut tail = store.tail(one.agent, one.head);
        let noted = soon(tail.next()).await.unwrap();
        assert!(matches!(noted[0].body, Body::Purged(_)));
        for n in 0..200 {
            let events = two.turn(&format!("number {n}"), "fine");
            soon(append(&store, &mut two, events)).await;
        }
        assert!(!purging.is_finished());
        assert_eq!(count(&reader), before);
        reader.execute_batch("COMMIT").unwrap();
        drop(reader);
        let done = soon(purging).await.unwrap().unwrap();
        assert_eq!(done.events, 2);
        assert_eq!(traces_now(&lab, FIRST), [""; 0]);
        let log = lab.copy().dir().join("journal.db-wal");
        assert_eq!(std::fs::metadata(log).map_or(0, |log| log.len()), 0);
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn a_purge_that_was_killed_has_happened_or_not_and_can_be_done_again() {
    let rounds = if long() { 200 } else { 10 };
    let (mut done, mut undone) = (0, 0);
    for round in 0..rounds {
        let lab = Lab::new();
        run(async {
            let mut author;
            {
                let store = lab.open();
                author = Author::create(&store, 1, "one").await;
                let mut words = Words::new(FIRST);
                for _ in 0..8 {
                    stream_and_say(&store, &mut author, &mut words, 20).await;
                }
                let events = author.reset();
                append(&store, &mut author, events).await;
                store.wait_caught_up().await.unwrap();
            }
            let before = lab.open().load(author.agent).await.unwrap();
            let mut second = Second::start(&lab.dir());
            assert_eq!(second.hear(), "open");
            second.ask("claim");
            second.tell(&format!("purge {}", author.first));
            // From at once to long after it is done.
            let delay = 1000.0 * 1.7_f64.powi(round % 10);
            let moment = Instant::now() + Duration::from_micros(delay as u64);
            while Instant::now() < moment {
                std::hint::spin_loop();
            }
            second.kill();

            let store = lab.open();
            assert!(store.verify(None).await.unwrap().is_clean());
            let after = store.load(author.agent).await.unwrap();
            store.wait_caught_up().await.unwrap();
            match after.state.tree.get(author.first).unwrap().purged {
                true => done += 1,
                false => {
                    undone += 1;
                    assert_eq!(after, before);
                    assert_eq!(hits(&store, &Words::new(FIRST).next()).await, 1);
                }
            }
            author.fence = store.claim(author.agent, "next").await.unwrap().fence;
            purge(&store, &author, author.first).await;
            assert_eq!(traces_now(&lab, FIRST), [""; 0]);
            assert!(store.verify(None).await.unwrap().is_clean());
        });
    }
    println!("{done} were done, {undone} were not");
}

#[test]
fn what_was_quarantined_of_it_goes_too() {
    let lab = Lab::new();
    run(async {
        let mut author = {
            let store = lab.open();
            let mut author = Author::create(&store, 1, "one").await;
            let mut words = Words::new(FIRST);
            for _ in 0..20 {
                stream_and_say(&store, &mut author, &mut words, 20).await;
            }
            let mut other = Author::create(&store, 2, "two").await;
            let events = other.turn("kept", "kept too");
            append(&store, &mut other, events).await;
            store.wait_caught_up().await.unwrap();
            author
        };
        lab.journal()
            .execute(
                "UPDATE event SET salt = zeroblob(16) WHERE agent = 1 AND seq = 60",
                [],
            )
            .unwrap();
        let store = lab.open();
        let claim = store.claim(author.agent, "next").await.unwrap();
        assert!(claim.quarantined.is_some());
        author.fence = claim.fence;
        let old = author.conversation;
        let events = author.reset();
        append(&store, &mut author, events).await;
        store.wait_caught_up().await.unwrap();
        assert!(store.verify(None).await.unwrap().quarantined > 100);
        purge(&store, &author, old).await;
        assert_eq!(traces_now(&lab, FIRST), [""; 0]);
        store.wait_caught_up().await.unwrap();
        assert_eq!(hits(&store, &Words::new(FIRST).next()).await, 0);
        assert_eq!(hits(&store, "kept").await, 2);
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.quarantined, 0);
    });
}

#[test]
fn a_draft_that_nobody_ended_goes_too_and_one_that_streams_stays() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        let mut two = Author::create(&store, 2, "two").await;
        let mut words = Words::new(FIRST);
        for author in [&mut one, &mut two] {
            // Cut off, and its outcome is not on record.
            let request = author.next_try();
            for n in 0..30 {
                let chunk = DraftChunk {
                    request,
                    offset: n * 160,
                    bytes: words.text(11).into_bytes()[..160].to_vec(),
                };
                store.write_draft(author.fence, chunk).await.unwrap();
            }
            let events = author.reset();
            append(&store, author, events).await;
        }
        // In the new conversation another reply is on its way.
        let turn = Some(one.turn_id());
        let request = one.next_try();
        let sent = RequestSent {
            request,
            purpose: Purpose::Answer,
            grant: Grant::default(),
        };
        let events = vec![
            one.event(turn, TurnStarted::default()),
            one.event(turn, sent),
        ];
        append(&store, &mut one, events).await;
        let chunk = |offset: u64, bytes: &[u8]| DraftChunk {
            request,
            offset,
            bytes: bytes.to_vec(),
        };
        let kept = store.write_draft(one.fence, chunk(0, b"still ")).await;
        assert_eq!(kept.unwrap(), DraftAck::Kept);
        purge(&store, &two, two.first).await;
        purge(&store, &one, one.first).await;
        assert_eq!(traces_now(&lab, FIRST), [""; 0]);
        let kept = store.write_draft(one.fence, chunk(6, b"here")).await;
        assert_eq!(kept.unwrap(), DraftAck::Kept);
        let draft = store.draft(one.agent).await.unwrap().unwrap();
        assert_eq!(
            (draft.request, draft.bytes.as_slice()),
            (request, b"still here".as_slice())
        );
        assert_eq!(store.draft(two.agent).await.unwrap(), None);
    });
}
