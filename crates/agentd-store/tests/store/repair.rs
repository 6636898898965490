//! Repair: the readable part of a damaged journal is recovered, the damaged files are kept, and the affected agents are
//! named.

use crate::lab::{Author, Lab, events_of, long, run};
use agentd_core::event::{Body, Event};
use agentd_core::id::{AgentId, Seq};
use agentd_core::time::Timestamp;
use agentd_store::{Append, Error, Options, Repaired, SqliteStore, Store as _, Unreadable};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const PAGE: usize = 8192;

/// A closed journal of a few agents, and its events.
struct Patient {
    lab: Lab,
    journals: BTreeMap<AgentId, Vec<Event>>,
    names: BTreeMap<AgentId, &'static str>,
}

impl Patient {
    async fn new() -> Self {
        let lab = Lab::new();
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut journals = BTreeMap::new();
        let mut names = BTreeMap::new();
        // One after the other, so that most pages hold the events of one agent alone.
        for (number, name) in [(1, "first"), (2, "second"), (3, "third")] {
            let mut author = Author::create(&store, number, name).await;
            for n in 0..8 {
                let words = format!("{name} says number {n}");
                let events = match n % 4 {
                    3 => author.tool_turn(&words, &words.repeat(1500), "done"),
                    _ => author.turn(&words, "an answer"),
                };
                author.append(&store, events).await;
            }
            journals.insert(author.agent, events_of(&store, author.agent).await);
            names.insert(author.agent, name);
        }
        drop(store);
        Self {
            lab,
            journals,
            names,
        }
    }

    fn copy(&self) -> Self {
        Self {
            lab: self.lab.copy(),
            journals: self.journals.clone(),
            names: self.names.clone(),
        }
    }

    fn file(&self) -> PathBuf {
        self.lab.dir().join("journal.db")
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = fs::read(self.file()).unwrap();
        change(&mut bytes);
        fs::write(self.file(), &bytes).unwrap();
        bytes
    }

    /// Checks that a store returns only what was written before the repair, and that unaffected agents are complete.
    async fn assert_contained(&self, store: &SqliteStore, hit: &[AgentId]) {
        for (agent, journal) in &self.journals {
            match store.load(*agent).await {
                Ok(loaded) if hit.contains(agent) => {
                    let told = loaded.damage.is_some() || loaded.state.head.0 > 0;
                    assert!(told, "{agent} is shown as empty");
                }
                Ok(loaded) => {
                    assert_eq!(loaded.damage, None);
                    assert_eq!(loaded.state.head.0, journal.len() as u64);
                }
                Err(_) => {}
            }
        }
    }

    /// Checks a repaired journal: prefixes of the original journals, an event where something is missing, and everything
    /// else unchanged. Returns the agents that have lost events.
    async fn assert_repaired(&self, repaired: &Repaired, damaged: Option<&[u8]>) -> Vec<AgentId> {
        let kept = repaired.kept.as_ref().expect("the damaged file is kept");
        let kept = fs::read(kept.join("journal.db")).ok();
        assert_eq!(kept.as_deref(), damaged);
        let store = SqliteStore::open(options(&self.lab)).unwrap();
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
        let mut hit = Vec::new();
        for (agent, journal) in &self.journals {
            let told = repaired.hit.iter().find(|hit| hit.agent == *agent);
            let Some(told) = told else {
                assert_eq!(&events_of(&store, *agent).await, journal);
                continue;
            };
            hit.push(*agent);
            let last = told.recovered.0 as usize;
            assert!(last < journal.len());
            assert_eq!(told.damage.from, Seq(told.recovered.0 + 1));
            assert_eq!(told.damage.through.0 as usize, journal.len());
            if last == 0 {
                continue;
            }
            assert_eq!(told.name.as_deref(), Some(self.names[agent]));
            let events = events_of(&store, *agent).await;
            assert_eq!(&events[..last], &journal[..last]);
            let Body::Quarantined(note) = &events[last].body else {
                panic!("{:?}", events[last]);
            };
            assert_eq!(
                (note.from, note.through),
                (told.damage.from, told.damage.through)
            );
            // It goes on from there.
            let claim = store.claim(*agent, "next").await.unwrap();
            assert_eq!(claim.quarantined, None);
        }
        hit
    }
}

fn options(lab: &Lab) -> Options {
    Options {
        snapshot_every: u64::MAX,
        ..lab.options()
    }
}

#[test]
fn a_wrecked_page_hits_its_own_agents_alone_and_repair_recovers_the_rest() {
    run(async {
        let whole = Patient::new().await;
        let pages = fs::metadata(whole.file()).unwrap().len() as usize / PAGE;
        let (mut hit_by_one, mut unhurt) = (0, 0);
        let step = if long() { 1 } else { 2 };
        for page in (0..pages).step_by(step) {
            let patient = whole.copy();
            let damaged = patient.change(|bytes| bytes[page * PAGE..][..PAGE].fill(0xa5));
            let options = options(&patient.lab);
            let report = SqliteStore::inspect(&options).unwrap();
            if report.is_clean() {
                // A page of no table, such as one that is free.
                unhurt += 1;
                continue;
            }
            let named: Vec<AgentId> = report.damaged.iter().map(|(agent, _)| *agent).collect();
            if let Ok(store) = SqliteStore::open(options.clone()) {
                patient.assert_contained(&store, &named).await;
            }
            let damaged_now = fs::read(patient.file()).unwrap();
            assert_eq!(damaged_now.len(), damaged.len());
            let repaired = SqliteStore::repair(&options).await.unwrap();
            let hit = patient.assert_repaired(&repaired, Some(&damaged_now)).await;
            // A page of long texts may hold those of more agents.
            let of_events = repaired.hit.iter();
            let of_events = of_events.filter(|hit| hit.damage.reason == Unreadable::Missing);
            assert!(of_events.count() <= 2, "page {page}: {:?}", repaired.hit);
            for agent in &hit {
                assert!(named.contains(agent), "page {page}: {report:?}");
            }
            hit_by_one += usize::from(hit.len() == 1);
        }
        println!("{pages} pages: {hit_by_one} hit one agent, {unhurt} none");
        assert!(hit_by_one >= 2, "{hit_by_one} of {pages}");
    });
}

#[test]
fn an_agent_on_a_wrecked_page_is_shown_as_far_as_it_goes_and_says_what_to_do() {
    run(async {
        let patient = Patient::new().await;
        let pages = fs::metadata(patient.file()).unwrap().len() as usize / PAGE;
        let (mut seen, mut went_on) = (0, 0);
        for page in 1..pages {
            let hurt = patient.copy();
            hurt.change(|bytes| bytes[page * PAGE..][..PAGE].fill(0xa5));
            let Ok(store) = SqliteStore::open(options(&hurt.lab)) else {
                continue;
            };
            for (agent, journal) in &hurt.journals {
                let Ok(loaded) = store.load(*agent).await else {
                    continue;
                };
                let Some(damage) = loaded.damage else {
                    continue;
                };
                seen += 1;
                assert_eq!(damage.through.0, journal.len() as u64);
                assert_eq!(loaded.state.head.0 + 1, damage.from.0);
                let shown = store
                    .read(agentd_store::ReadQuery::all(*agent, Seq::ZERO, 1000))
                    .await;
                assert_eq!(shown.unwrap().events.len() as u64, loaded.state.head.0);
                // Its next owner hears what to do, and other agents' commits go through.
                if let Err(refused) = store.claim(*agent, "next").await {
                    let text = refused.to_string();
                    assert!(text.contains("agentd verify --repair"), "{text}");
                }
                let claim = store.claim(crate::lab::agent_id(9), "other").await;
                let mut other = Author::new(9, claim.unwrap().fence);
                let events = other.created("other");
                match store.append(Append::new(other.fence, events)).await {
                    Ok(_) => went_on += 1,
                    // It has to be written to the damaged page itself.
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("agentd verify --repair"), "{text}");
                    }
                }
                break;
            }
        }
        assert!(seen >= 5 && went_on >= 3, "{seen}, {went_on}");
    });
}

#[test]
fn a_truncated_file_or_damaged_first_pages_leave_a_way_out() {
    run(async {
        let whole = Patient::new().await;
        let size = fs::metadata(whole.file()).unwrap().len() as usize;
        type Harm = Box<dyn Fn(&mut Vec<u8>)>;
        let cut = |to: usize| -> Harm { Box::new(move |bytes| bytes.truncate(to)) };
        let harms: [(&str, Harm); 7] = [
            ("cut in half", cut(size / 2)),
            ("cut in the middle of a page", cut(size - PAGE / 2)),
            ("one page left", cut(PAGE)),
            ("a few bytes left", cut(100)),
            ("nothing left", cut(0)),
            ("no header", Box::new(|bytes| bytes[..100].fill(0))),
            (
                "no first pages",
                Box::new(|bytes| bytes[..3 * PAGE].fill(0x55)),
            ),
        ];
        for (name, harm) in harms {
            println!("{name}");
            let patient = whole.copy();
            let damaged = patient.change(|bytes| harm(bytes));
            let options = options(&patient.lab);
            if let Ok(report) = SqliteStore::inspect(&options) {
                assert!(!report.is_clean(), "{name}");
            }
            let repaired = SqliteStore::repair(&options).await.unwrap();
            let hit = patient.assert_repaired(&repaired, Some(&damaged)).await;
            match name {
                "no header" => assert!(hit.is_empty(), "{:?}", repaired.hit),
                "nothing left" | "a few bytes left" | "one page left" => {
                    assert_eq!(hit.len(), 3, "{:?}", repaired.hit);
                }
                _ => {}
            }
        }
    });
}

#[test]
fn a_journal_that_was_deleted_is_begun_anew_by_a_repair_and_says_who_is_lost() {
    run(async {
        let patient = Patient::new().await;
        fs::remove_file(patient.file()).unwrap();
        let options = options(&patient.lab);
        let refused = SqliteStore::open(options.clone()).map(drop).unwrap_err();
        assert!(matches!(refused, Error::NoJournal { .. }), "{refused}");
        let repaired = SqliteStore::repair(&options).await.unwrap();
        let hit = patient.assert_repaired(&repaired, None).await;
        assert_eq!(hit.len(), 3);
        assert!(repaired.hit.iter().all(|hit| hit.recovered == Seq::ZERO));
    });
}

#[test]
fn events_behind_a_flipped_bit_of_the_log_are_recovered() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        for n in 0..6 {
            let events = author.turn(&format!("number {n}"), "acknowledged");
            author.append(&store, events).await;
        }
        let journal = events_of(&store, author.agent).await;
        let copy = lab.copy();
        let path = copy.dir().join("journal.db-wal");
        let mut log = fs::read(&path).unwrap();
        // In the first commit: SQLite sees nothing of what comes behind it.
        log[200] ^= 1;
        fs::write(&path, &log).unwrap();
        let refused = SqliteStore::open(options(&copy)).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Behind { .. }), "{refused}");
        let repaired = SqliteStore::repair(&options(&copy)).await.unwrap();
        assert_eq!(repaired.hit, []);
        let kept = repaired.kept.unwrap();
        assert_eq!(fs::read(kept.join("journal.db-wal")).unwrap(), log);
        let store = SqliteStore::open(options(&copy)).unwrap();
        assert_eq!(events_of(&store, author.agent).await, journal);
        assert!(store.verify(None).await.unwrap().is_clean());
        drop(store);
        // Twice changes nothing.
        let again = SqliteStore::repair(&options(&copy)).await.unwrap();
        assert_eq!((again.kept, again.hit.len()), (None, 0));
    });
}

#[test]
fn a_repair_without_the_lost_log_goes_on_from_what_is_left() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        store.checkpoint().await.unwrap();
        let had = author.head;
        let events = author.turn("hello", "lost");
        author.append(&store, events).await;
        let copy = lab.copy();
        fs::remove_file(copy.dir().join("journal.db-wal")).unwrap();
        let repaired = SqliteStore::repair(&options(&copy)).await.unwrap();
        let [hit] = repaired.hit.as_slice() else {
            panic!("{repaired:?}");
        };
        assert_eq!((hit.agent, hit.recovered), (author.agent, had));
        assert_eq!(hit.damage.through, author.head);
        let store = SqliteStore::open(options(&copy)).unwrap();
        assert!(store.verify(None).await.unwrap().is_clean());
        let events = events_of(&store, author.agent).await;
        assert!(matches!(events.last().unwrap().body, Body::Quarantined(_)));
    });
}

#[test]
fn what_was_purged_does_not_come_back_by_a_repair() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.tool_turn("a secret word", &"a long secret ".repeat(2000), "hidden");
        author.append(&store, events).await;
        let events = author.reset();
        author.append(&store, events).await;
        for n in 0..20 {
            let events = author.turn(&format!("number {n}"), "an answer");
            author.append(&store, events).await;
        }
        let at = Timestamp::from_millis(1);
        store.purge(author.fence, author.first, at).await.unwrap();
        let journal = events_of(&store, author.agent).await;
        drop(store);
        let file = lab.dir().join("journal.db");
        let mut bytes = fs::read(&file).unwrap();
        bytes[..100].fill(0);
        fs::write(&file, bytes).unwrap();
        let repaired = SqliteStore::repair(&options(&lab)).await.unwrap();
        assert_eq!(repaired.hit, []);
        let store = SqliteStore::open(options(&lab)).unwrap();
        assert_eq!(events_of(&store, author.agent).await, journal);
        assert!(store.verify(None).await.unwrap().is_clean());
        drop(store);
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|word| word == b"secret"));
    });
}

#[test]
fn events_that_were_quarantined_before_are_not_lost_again_by_a_repair() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        for n in 0..10 {
            let events = author.turn(&format!("number {n}"), "an answer");
            author.append(&store, events).await;
        }
        drop(store);
        let sql = "UPDATE event SET at = at + 1 WHERE agent = 1 AND seq = 10";
        assert_eq!(lab.journal().execute(sql, []).unwrap(), 1);
        let store = SqliteStore::open(options(&lab)).unwrap();
        let claim = store.claim(author.agent, "next").await.unwrap();
        assert!(claim.quarantined.is_some());
        let journal = events_of(&store, author.agent).await;
        assert!(journal.len() < 15, "{}", journal.len());
        drop(store);
        let file = lab.dir().join("journal.db");
        let mut bytes = fs::read(&file).unwrap();
        bytes[..100].fill(0);
        fs::write(&file, bytes).unwrap();
        let repaired = SqliteStore::repair(&options(&lab)).await.unwrap();
        assert_eq!(repaired.hit, []);
        let store = SqliteStore::open(options(&lab)).unwrap();
        assert_eq!(events_of(&store, author.agent).await, journal);
    });
}

#[test]
fn what_is_read_behind_a_gap_is_kept_as_text_beside_the_damaged_file() {
    run(async {
        let patient = Patient::new().await;
        let pages = fs::metadata(patient.file()).unwrap().len() as usize / PAGE;
        let mut seen = 0;
        for page in 0..pages {
            let hurt = patient.copy();
            hurt.change(|bytes| bytes[page * PAGE..][..PAGE].fill(0));
            let Ok(repaired) = SqliteStore::repair(&options(&hurt.lab)).await else {
                panic!("page {page}");
            };
            let Some(kept) = &repaired.kept else { continue };
            for hit in &repaired.hit {
                let file = kept.join(format!("{}.jsonl", hit.agent));
                let Ok(text) = fs::read_to_string(file) else {
                    continue;
                };
                seen += 1;
                let journal = &hurt.journals[&hit.agent];
                for line in text.lines() {
                    let event: Event = serde_json::from_str(line).unwrap();
                    assert_eq!(event, journal[event.seq.0 as usize - 1]);
                    assert!(event.seq > hit.recovered);
                }
            }
        }
        assert!(seen >= 5, "{seen}");
    });
}
