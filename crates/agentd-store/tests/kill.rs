//! A process that appends as fast as it can is killed repeatedly: every acknowledged event exists, once and in order.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

use agentd_core::event::{
    AgentCreated, BeginSource, Body, ConversationBegan, Mode, NewEvent, Note,
};
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId};
use agentd_core::time::Timestamp;
use agentd_store::{
    Ack, Append, DraftChunk, Error, Fence, Options, ReadQuery, Source, SqliteStore, Store as _,
};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const AGENTS: u8 = 3;
const DIR: &str = "AGENTD_KILL_DIR";
const CLOCK: &str = "AGENTD_KILL_CLOCK";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn agent(n: u8) -> AgentId {
    AgentId::from_bytes([n + 1; 16])
}

fn conversation(n: u8) -> ConversationId {
    ConversationId::from_bytes([n + 101; 16])
}

fn event(n: u8, clock: i64, body: impl Into<Body>) -> NewEvent {
    NewEvent {
        at: Timestamp::from_millis(clock),
        conversation: conversation(n),
        turn: None,
        body: body.into(),
    }
}

/// The events of the n-th append of an incarnation: one, two or three.
fn append(fence: Fence, n: u8, clock: i64, source: Source) -> Append {
    let events = (0..source.n % 3 + 1).map(|part| {
        let about = None;
        let text = format!("{}.{}.{part}", source.incarnation, source.n);
        event(n, clock, Note { about, text })
    });
    Append {
        source: Some(source),
        ..Append::new(fence, events.collect())
    }
}

/// Writes a line to the parent, completely or not at all.
fn say(words: std::fmt::Arguments<'_>) {
    let line = format!("{words}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Not a test: the process that is killed. It does nothing unless its variables are set.
#[test]
fn the_process_that_is_killed() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let clock: i64 = std::env::var(CLOCK).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(Options::new(PathBuf::from(dir))).unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..AGENTS {
            writers.spawn(write_for_ever(store.clone(), n, clock));
        }
        while let Some(ended) = writers.join_next().await {
            ended.unwrap();
        }
    });
}

async fn write_for_ever(store: SqliteStore, n: u8, clock: i64) {
    let fence = store.claim(agent(n), "killed").await.unwrap().fence;
    let incarnation = Incarnation(fence.epoch);
    if store.load(agent(n)).await.is_err() {
        let (name, mode) = (format!("agent-{n}"), Mode::Persistent);
        let (parent, from, op) = (None, None, None);
        let source = BeginSource::Create;
        let began = ConversationBegan {
            source,
            parent,
            from,
            op,
        };
        let created = AgentCreated { name, mode };
        let events = vec![event(n, clock, created), event(n, clock, began)];
        store.append(Append::new(fence, events)).await.unwrap();
    }
    for count in 1.. {
        let source = Source {
            incarnation,
            n: count,
        };
        say(format_args!("sent {n} {incarnation} {count}"));
        if count % 5 == 0 {
            let request = TryId {
                incarnation,
                n: count,
            };
            let (offset, bytes) = (0, b"streaming".to_vec());
            let chunk = DraftChunk {
                request,
                offset,
                bytes,
            };
            store.write_draft(fence, chunk).await.unwrap();
        }
        let mut append = append(fence, n, clock, source);
        append.ends = (count % 10 == 5).then_some(TryId {
            incarnation,
            n: count,
        });
        match store.append(append).await.unwrap() {
            Ack::Committed { first, last } => say(format_args!(
                "acked {n} {first} {last} {incarnation} {count}"
            )),
            Ack::Repeated { .. } => unreachable!("a counter that was never used before"),
        }
    }
}

/// What the parent received from all children.
#[derive(Default)]
struct Heard {
    /// By agent: the last event that was acknowledged.
    acked: BTreeMap<u8, Seq>,
    /// By agent: the newest append, and whether it was acknowledged.
    newest: BTreeMap<u8, (Source, bool)>,
    acks: u64,
}

impl Heard {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let source = |at: usize| Source {
            incarnation: Incarnation(number(at)),
            n: number(at + 1),
        };
        match words.first() {
            Some(&"sent") => {
                self.newest.insert(number(1) as u8, (source(2), false));
            }
            Some(&"acked") => {
                let n = number(1) as u8;
                let before = self.acked.insert(n, Seq(number(3)));
                assert!(before.is_none_or(|seq| seq.0 < number(2)), "out of order");
                self.newest.insert(n, (source(4), true));
                self.acks += 1;
            }
            // What the test runner in the child says of itself.
            _ => {}
        }
    }
}

fn start(dir: &Path, clock: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["the_process_that_is_killed", "--exact", "--nocapture"])
        .env(DIR, dir)
        .env(CLOCK, clock.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills a child after it has acknowledged this many appends.
fn kill_after(acks: u64, dir: &Path, clock: i64, heard: &mut Heard) {
    let mut child = start(dir, clock);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let enough = heard.acks + acks;
    while heard.acks < enough {
        heard.line(
            &lines
                .next()
                .expect("the child goes on until it is killed")
                .unwrap(),
        );
    }
    child.kill().unwrap();
    // What it said before it died counts.
    for line in lines {
        heard.line(&line.unwrap());
    }
    child.wait().unwrap();
}

async fn notes(store: &SqliteStore, n: u8) -> Vec<String> {
    let mut notes = Vec::new();
    let mut after = Seq::ZERO;
    let mut expected = Seq(1);
    loop {
        let page = store
            .read(ReadQuery::all(agent(n), after, 1000))
            .await
            .unwrap();
        for event in &page.events {
            assert_eq!(event.seq, expected, "no gaps");
            expected = expected.next();
            if let Body::Note(note) = &event.body {
                notes.push(note.text.clone());
            }
        }
        match page.next {
            Some(next) => after = next,
            None => return notes,
        }
    }
}

/// No acknowledged event is missing. An append that was not acknowledged can be sent again, and is applied once.
async fn check(dir: &Path, heard: &Heard, clock: i64, thorough: bool) {
    let store = SqliteStore::open(Options::new(dir)).unwrap();
    for (&n, &acked) in &heard.acked {
        let head = store.load(agent(n)).await.unwrap();
        assert_eq!(head.damage, None);
        assert!(head.state.head >= acked, "an acknowledged event is missing");
        let Some(&(source, was_acked)) = heard.newest.get(&n) else {
            continue;
        };
        // The same owner, the same counter: as a runtime that comes back does.
        let epoch = source.incarnation.0;
        let fence = Fence {
            agent: agent(n),
            epoch,
        };
        let again = store.append(append(fence, n, clock, source)).await;
        match again {
            Ok(Ack::Repeated { .. }) => {}
            Ok(Ack::Committed { .. }) => {
                assert!(!was_acked, "an acknowledged append was applied again");
            }
            // The last child had claimed it, and died before it said a word: its word counts now.
            Err(Error::StaleFence { held, current, .. }) => {
                assert!(held < current);
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        if thorough {
            let notes = notes(&store, n).await;
            let tag = format!("{}.{}.", source.incarnation, source.n);
            let times = notes.iter().filter(|note| note.starts_with(&tag)).count();
            assert_eq!(times as u64, source.n % 3 + 1, "applied once");
            let unique: std::collections::BTreeSet<_> = notes.iter().collect();
            assert_eq!(unique.len(), notes.len(), "something was applied twice");
        }
    }
    if thorough {
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

fn kill_many_times(kills: u64, clock_of: impl Fn(u64) -> i64) {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let mut heard = Heard::default();
    for round in 0..kills {
        // Early, late and in between, the same in every run.
        let acks = 1 + (round * 7) % 40;
        let clock = clock_of(round);
        kill_after(acks, home.path(), clock, &mut heard);
        let thorough = round % 10 == 9 || round + 1 == kills;
        runtime.block_on(check(home.path(), &heard, clock, thorough));
    }
    println!("{kills} kills, {} appends acknowledged", heard.acks);
}

fn long() -> u64 {
    1 + 9 * u64::from(std::env::var_os("AGENTD_TEST_LONG").is_some())
}

#[test]
fn nothing_acknowledged_is_lost_in_200_kills() {
    kill_many_times(200 * long(), |_| 1_000_000_000_000);
}

/// goose#7472, goose#9461, goose#12003: order is the sequence, never the clock.
#[test]
fn the_same_with_the_clock_set_back_a_day_each_time() {
    kill_many_times(40 * long(), |round| {
        1_000_000_000_000 - round as i64 * DAY_MS
    });
}
