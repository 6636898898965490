//! Damage: the store reports where it is and moves it to quarantine unchanged, and never loads a damaged agent as an
//! empty one.

use crate::lab::{Author, Lab, long, run, soon};
use crate::model::Model;
use agentd_core::event::{Body, DecodeError, Kind};
use agentd_core::id::{AgentId, Seq};
use agentd_store::{
    Append, Cursor, Damage, Error, Fence, Options, Report, SqliteStore, Store as _, Unreadable,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

/// An agent whose journal is damaged, and one whose journal is not.
struct Patient {
    lab: Lab,
    agent: AgentId,
    other: AgentId,
    head: Seq,
    model: Model,
}

/// The damaged events: the answer of the second turn, and the tool's result of the fourth.
const ANSWER: i64 = 16;
const OUTPUT: i64 = 36;

impl Patient {
    async fn new() -> Self {
        let lab = Lab::new();
        let mut model = Model::default();
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut author = Author::create(&store, 1, "patient").await;
        let mut other = Author::create(&store, 2, "other").await;
        for n in 0..6 {
            let words = format!("words number {n}");
            let events = match n {
                3 => author.tool_turn(&words, &words.repeat(1000), "answer"),
                _ => author.turn(&words, "answer"),
            };
            author.append(&store, events).await;
            let events = other.turn(&words, "answer");
            other.append(&store, events).await;
        }
        for agent in [author.agent, other.agent] {
            for event in crate::lab::events_of(&store, agent).await {
                model.add(event);
            }
        }
        Self {
            lab,
            agent: author.agent,
            other: other.agent,
            head: author.head,
            model,
        }
    }

    /// The same agent in another directory, for another kind of damage.
    fn copy(&self) -> Self {
        Self {
            lab: self.lab.copy(),
            model: self.model.clone(),
            ..*self
        }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(options(&self.lab)).unwrap()
    }

    fn harm(&self, sql: &str) {
        let journal = self.lab.journal();
        let harmed = journal.execute(sql, []).unwrap();
        assert_eq!(harmed, 1, "{sql}");
    }

    async fn verify(&self, store: &SqliteStore) -> Report {
        store.verify(None).await.unwrap()
    }

    /// Checks that the events before the damage load unchanged.
    async fn assert_loads_up_to(&self, store: &SqliteStore, head: Seq, damage: Option<&Damage>) {
        let loaded = store.load(self.agent).await.unwrap();
        assert_eq!(loaded.damage.as_ref(), damage);
        let state = self.model.state(self.agent, head);
        let current = state.tree.current().unwrap();
        assert_eq!(loaded.state, state);
        assert_eq!(loaded.window, self.model.window(self.agent, current, head));
    }

    async fn assert_other_is_well(&self, store: &SqliteStore) {
        let loaded = store.load(self.other).await.unwrap();
        assert_eq!(loaded.state, self.model.state(self.other, Seq(u64::MAX)));
        assert_eq!(loaded.damage, None);
    }
}

fn options(lab: &Lab) -> Options {
    Options {
        snapshot_every: u64::MAX,
        ..lab.options()
    }
}

const COLUMNS: &str = "position, seq, at, conversation, turn, kind, version, body, apart, salt, \
                       digest, chain, source_incarnation, source_n";

fn rows(journal: &Connection, table: &str, from: Seq) -> Vec<Vec<Value>> {
    let sql = format!("SELECT {COLUMNS} FROM {table} WHERE agent = 1 AND seq >= ?1 ORDER BY seq");
    let mut statement = journal.prepare(&sql).unwrap();
    let rows = statement.query_map([from.0 as i64], |row| {
        (0..14).map(|at| row.get(at)).collect()
    });
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn each_kind_of_damage_is_told_and_set_aside_and_the_rest_lives_on() {
    // claude-code#53821, #24304, #56649: a torn line or a broken parent loads as a blank
    // conversation, or what comes next overwrites it.
    let flip = |column: &str, seq: i64| {
        format!(
            "UPDATE event SET {column} = CAST(x'ff' || substr({column}, 2) AS BLOB)
             WHERE agent = 1 AND seq = {seq}"
        )
    };
    let set =
        |what: &str, seq: i64| format!("UPDATE event SET {what} WHERE agent = 1 AND seq = {seq}");
    let blob = "WHERE num = (SELECT max(num) FROM blob)";
    let harms = [
        (
            set("body = replace(body, 'answer', 'anthem')", ANSWER),
            ANSWER,
            Unreadable::BodyChanged,
        ),
        (set("body = '{'", ANSWER), ANSWER, Unreadable::BodyChanged),
        (set("body = NULL", ANSWER), ANSWER, Unreadable::BodyChanged),
        (set("salt = NULL", ANSWER), ANSWER, Unreadable::BodyChanged),
        (flip("salt", ANSWER), ANSWER, Unreadable::BodyChanged),
        (set("salt = x'00'", ANSWER), ANSWER, Unreadable::Misshapen),
        (flip("digest", ANSWER), ANSWER, Unreadable::BrokenChain),
        (flip("chain", ANSWER), ANSWER, Unreadable::BrokenChain),
        (set("chain = x''", ANSWER), ANSWER, Unreadable::Misshapen),
        (set("at = at + 1", ANSWER), ANSWER, Unreadable::BrokenChain),
        (set("turn = NULL", ANSWER), ANSWER, Unreadable::BrokenChain),
        (
            flip("conversation", ANSWER),
            ANSWER,
            Unreadable::BrokenChain,
        ),
        (
            set("kind = 'notice'", ANSWER),
            ANSWER,
            Unreadable::BrokenChain,
        ),
        (
            set("kind = 'unheard_of'", ANSWER),
            ANSWER,
            Unreadable::BrokenChain,
        ),
        (
            format!("DELETE FROM event WHERE agent = 1 AND seq = {ANSWER}"),
            ANSWER,
            Unreadable::Gap,
        ),
        (set("agent = 3", ANSWER), ANSWER, Unreadable::Gap),
        (
            format!("DELETE FROM blob {blob}"),
            OUTPUT,
            Unreadable::BlobMissing,
        ),
        (
            format!("UPDATE blob SET zstd = zeroblob(length(zstd)) {blob}"),
            OUTPUT,
            Unreadable::BlobMissing,
        ),
        (
            format!("UPDATE blob SET size = 10 {blob}"),
            OUTPUT,
            Unreadable::BlobMissing,
        ),
        (set("apart = NULL", OUTPUT), OUTPUT, Unreadable::BodyChanged),
    ];
    run(async {
        let healthy = Patient::new().await;
        for (sql, at, reason) in harms {
            println!("{sql}");
            let patient = healthy.copy();
            patient.harm(&sql);
            let (from, through) = (Seq(at as u64), healthy.head);
            let damage = Damage {
                from,
                through,
                reason,
            };
            let good = Seq(from.0 - 1);

            let store = patient.open();
            patient
                .assert_loads_up_to(&store, good, Some(&damage))
                .await;
            patient.assert_other_is_well(&store).await;
            let report = patient.verify(&store).await;
            assert_eq!(report.damaged, [(patient.agent, damage.clone())]);

            // No writer can append after the damage, not even the owner.
            let fence = Fence {
                agent: patient.agent,
                epoch: 1,
            };
            let mut author = Author::new(1, fence);
            let events = author.turn("more", "more");
            let refused = store.append(Append::new(fence, events)).await;
            assert!(matches!(refused, Err(Error::Damaged { seq, .. }) if seq == from));

            // A new owner sets it aside, as it was found.
            let found = rows(&patient.lab.journal(), "event", from);
            let claim = store.claim(patient.agent, "next").await.unwrap();
            assert_eq!(claim.quarantined, Some(damage));
            assert_eq!(rows(&patient.lab.journal(), "quarantine", from), found);
            let events = crate::lab::events_of(&store, patient.agent).await;
            assert_eq!(events.len() as u64, from.0);
            let Body::Quarantined(note) = &events[events.len() - 1].body else {
                panic!("{:?}", events.last());
            };
            assert_eq!((note.from, note.through), (from, through));
            let loaded = store.load(patient.agent).await.unwrap();
            assert_eq!((loaded.damage, loaded.state.head), (None, from));
            patient.assert_other_is_well(&store).await;

            // The journal goes on, and nothing that was set aside is overwritten by it.
            author.fence = claim.fence;
            author.conversation = loaded.state.tree.current().unwrap();
            for n in 0..9 {
                let events = author.turn(&format!("afterwards {n}"), "well again");
                author.append(&store, events).await;
            }
            drop(store);
            let store = patient.open();
            assert_eq!(rows(&patient.lab.journal(), "quarantine", from), found);
            let report = patient.verify(&store).await;
            assert!(report.damaged.is_empty(), "{report:?}");
            assert_eq!(report.quarantined, found.len() as u64);
            assert!(
                patient
                    .lab
                    .journal()
                    .query_row("SELECT count(*) FROM event WHERE agent = 1", [], |row| Ok(
                        row.get::<_, i64>(0)? == author.head.0 as i64
                    ),)
                    .unwrap()
            );
        }
    });
}

/// Replaces the last event by another one with valid checksums, as a newer agentd or a faulty program would write it.
fn replace_last(journal: &Connection, kind: &str, version: u32, body: &str) {
    type Last = (
        i64,
        Vec<u8>,
        i64,
        i64,
        Vec<u8>,
        Option<Vec<u8>>,
        Vec<u8>,
        Vec<u8>,
    );
    let (position, agent, seq, at, conversation, turn, salt, prev): Last = journal
        .query_row(
            "SELECT e.position, agent.id, e.seq, e.at, e.conversation, e.turn, e.salt, before.chain
             FROM event e JOIN agent ON agent.num = e.agent
             JOIN event before ON before.agent = e.agent AND before.seq = e.seq - 1
             WHERE e.agent = 1 ORDER BY e.seq DESC LIMIT 1",
            [],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                    row.get(7)?,
                ))
            },
        )
        .unwrap();
    let digest = Sha256::new()
        .chain_update(&salt)
        .chain_update((body.len() as u64).to_le_bytes())
        .chain_update(body)
        .finalize();
    let chain = Sha256::new()
        .chain_update(&prev)
        .chain_update(&agent)
        .chain_update((seq as u64).to_le_bytes())
        .chain_update(at.to_le_bytes())
        .chain_update(&conversation)
        .chain_update([u8::from(turn.is_some())])
        .chain_update(turn.clone().unwrap_or(vec![0; 16]))
        .chain_update((kind.len() as u64).to_le_bytes())
        .chain_update(kind)
        .chain_update(version.to_le_bytes())
        .chain_update(digest)
        .finalize();
    journal
        .execute(
            "UPDATE event SET kind = ?2, version = ?3, body = ?4, digest = ?5, chain = ?6
             WHERE position = ?1",
            params![
                position,
                kind,
                version,
                body,
                digest.as_slice(),
                chain.as_slice()
            ],
        )
        .unwrap();
}

#[test]
fn a_body_that_makes_no_sense_is_damage() {
    run(async {
        let patient = Patient::new().await;
        replace_last(
            &patient.lab.journal(),
            "turn_ended",
            1,
            r#"{"status":"dreamt"}"#,
        );
        let store = patient.open();
        let good = Seq(patient.head.0 - 1);
        let loaded = store.load(patient.agent).await.unwrap();
        let damage = loaded.damage.unwrap();
        assert_eq!((damage.from, damage.through), (patient.head, patient.head));
        let undecodable = Unreadable::Undecodable(DecodeError::Damaged {
            kind: "turn_ended",
            reason: String::new(),
        });
        assert_eq!(
            std::mem::discriminant(&damage.reason),
            std::mem::discriminant(&undecodable)
        );
        assert_eq!(loaded.state, patient.model.state(patient.agent, good));
        let claim = store.claim(patient.agent, "next").await.unwrap();
        assert_eq!(claim.quarantined, Some(damage));
        assert!(patient.verify(&store).await.is_clean());
    });
}

#[test]
fn what_a_newer_agentd_wrote_is_refused_and_left_alone() {
    run(async {
        let healthy = Patient::new().await;
        let newer = Kind::TurnEnded.version() + 1;
        for (kind, version) in [("dream_dreamt", 1), ("turn_ended", newer)] {
            let patient = healthy.copy();
            replace_last(&patient.lab.journal(), kind, version, r#"{"of":"sheep"}"#);
            let store = patient.open();
            let refused = [
                store.load(patient.agent).await.unwrap_err(),
                store.claim(patient.agent, "next").await.unwrap_err(),
            ];
            for refused in refused {
                assert!(matches!(refused, Error::Damaged { seq, .. } if seq == patient.head));
                let text = refused.to_string();
                assert!(text.contains("upgrade") && text.contains(kind), "{text}");
            }
            // Nothing was set aside, and the owner before is the owner still.
            let left: (i64, i64, i64) = patient
                .lab
                .journal()
                .query_row(
                    "SELECT (SELECT count(*) FROM quarantine), (SELECT max(seq) FROM event WHERE agent = 1),
                            (SELECT fence FROM agent WHERE num = 1)",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .unwrap();
            assert_eq!(left, (0, patient.head.0 as i64, 1));
            patient.assert_other_is_well(&store).await;
            let report = patient.verify(&store).await;
            assert_eq!(report.damaged.len(), 1);
            // It does not keep the followers of the others from following.
            let mut other = Author::claim(&store, 2).await;
            let events = other.turn("nevertheless", "indeed");
            other.append(&store, events).await;
            store.wait_caught_up().await.unwrap();
            let query = agentd_store::SearchQuery {
                text: "nevertheless".to_owned(),
                agent: None,
                limit: 1,
                before: None,
            };
            assert_eq!(store.search(query).await.unwrap().hits.len(), 1);
        }
    });
}

#[test]
fn with_nothing_left_it_says_so_instead_of_showing_a_blank_agent() {
    run(async {
        let patient = Patient::new().await;
        patient.harm("UPDATE event SET chain = zeroblob(32) WHERE agent = 1 AND seq = 1");
        let store = patient.open();
        let loaded = store.load(patient.agent).await;
        assert!(
            matches!(loaded, Err(Error::Damaged { seq: Seq(1), .. })),
            "{loaded:?}"
        );
        let claimed = store.claim(patient.agent, "next").await;
        assert!(matches!(claimed, Err(Error::Damaged { seq: Seq(1), .. })));
        let rows = rows(&patient.lab.journal(), "event", Seq(1));
        assert_eq!(rows.len() as u64, patient.head.0);
        patient.assert_other_is_well(&store).await;
        let report = patient.verify(&store).await;
        assert_eq!(report.damaged.len(), 1);
    });
}

#[test]
fn verify_finds_what_a_load_has_no_reason_to_look_at() {
    let harms = [
        ("DELETE FROM blob_use", "not recorded"),
        (
            "UPDATE event SET body = NULL, salt = NULL WHERE agent = 1 AND kind = 'prompt' AND seq = 4",
            "was not purged",
        ),
        (
            "UPDATE agent SET name = 'somebody' WHERE num = 1",
            "the list",
        ),
        ("DELETE FROM name WHERE agent = 1", "the list"),
        (
            "UPDATE event SET agent = 77 WHERE agent = 2 AND seq = 50",
            "no agent",
        ),
        (
            "INSERT INTO blob (hash, size, zstd) VALUES (zeroblob(32), 0, x'')",
            "not used by any event",
        ),
    ];
    run(async {
        let healthy = Patient::new().await;
        for (sql, finding) in harms {
            let patient = healthy.copy();
            patient.harm(sql);
            let store = patient.open();
            let report = patient.verify(&store).await;
            assert!(!report.is_clean());
            let shown = format!("{report:?}");
            assert!(shown.contains(finding), "{sql}: {shown}");
        }
    });
}

#[test]
fn a_tail_that_is_missing_is_told_by_the_snapshot_that_saw_it() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(Options {
            snapshot_every: 2,
            ..lab.options()
        })
        .unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.turn("hello", "there");
        author.append(&store, events).await;
        store.wait_caught_up().await.unwrap();
        drop(store);
        lab.journal()
            .execute("DELETE FROM event WHERE agent = 1 AND seq = 10", [])
            .unwrap();
        // The head would not even let it be opened.
        std::fs::remove_file(lab.dir().join("journal.head")).unwrap();
        let store = lab.open();
        let report = store.verify(None).await.unwrap();
        let what = "events 10 to 10 are missing".to_owned();
        assert!(report.dangling.contains(&(author.agent, what)));
        // The rest is there, and is not taken for more.
        let loaded = store.load(author.agent).await.unwrap();
        assert_eq!(loaded.state.head, Seq(9));
    });
}

#[test]
fn a_fork_does_not_load_with_a_hole_where_its_ancestor_is_damaged() {
    let lab = Lab::new();
    run(async {
        let store = SqliteStore::open(options(&lab)).unwrap();
        let mut parent = Author::create(&store, 1, "parent").await;
        for n in 0..3 {
            let events = parent.turn(&format!("number {n}"), "answer");
            parent.append(&store, events).await;
        }
        let mut fork = Author::claim(&store, 2).await;
        let events = fork.forked("fork", parent.here());
        fork.append(&store, events).await;
        let events = fork.turn("in the fork", "answer");
        fork.append(&store, events).await;
        drop(store);
        for harm in [
            "DELETE FROM event WHERE agent = 1 AND seq = 12",
            "UPDATE event SET chain = zeroblob(32) WHERE agent = 1 AND seq = 12",
            "DELETE FROM event WHERE agent = 1 AND seq = 26",
        ] {
            let hurt = lab.copy();
            hurt.journal().execute(harm, []).unwrap();
            let store = hurt.open();
            let loaded = store.load(fork.agent).await;
            let agent = parent.agent;
            assert!(
                matches!(loaded, Err(Error::Damaged { agent: at, .. }) if at == agent),
                "{loaded:?}"
            );
            // What the fork itself has said is not lost over it.
            let claim = store.claim(fork.agent, "next").await.unwrap();
            assert_eq!(claim.quarantined, None);
        }
    });
}

#[test]
fn a_flipped_bit_anywhere_in_the_file_never_loads_as_something_else() {
    let flips = if long() { 2000 } else { 150 };
    run(async {
        let healthy = Patient::new().await;
        let file = std::fs::read(healthy.lab.dir().join("journal.db")).unwrap();
        let (mut whole, mut cut, mut refused) = (0, 0, 0);
        for flip in 0..flips {
            let bit = (flip as u64 * 2_654_435_761 + 12_345) % (file.len() as u64 * 8);
            let mut bytes = file.clone();
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            let hurt = Lab::new();
            std::fs::create_dir_all(hurt.dir()).unwrap();
            std::fs::write(hurt.dir().join("journal.db"), bytes).unwrap();
            let Ok(store) = SqliteStore::open(options(&hurt)) else {
                refused += 1;
                continue;
            };
            match store.load(healthy.agent).await {
                Ok(loaded) => {
                    let head = loaded.state.head;
                    assert!(head > Seq::ZERO);
                    let state = healthy.model.state(healthy.agent, head);
                    assert_eq!(loaded.state, state, "bit {bit}");
                    let current = state.tree.current().unwrap();
                    let window = healthy.model.window(healthy.agent, current, head);
                    assert_eq!(loaded.window, window, "bit {bit}");
                    match head == healthy.head {
                        true => whole += 1,
                        false => cut += 1,
                    }
                }
                Err(_) => refused += 1,
            }
            // It may find nothing where the bit meant nothing; it must not fail. Nor may those who
            // follow wait for ever.
            store.verify(None).await.unwrap();
            drop(soon(store.wait_caught_up()).await);
        }
        println!("{whole} whole, {cut} cut, {refused} refused");
    });
}

/// Regression: the reader of all agents left out an event whose agent was damaged, and said nothing.
#[test]
fn an_event_without_its_agent_is_not_left_out_silently() {
    run(async {
        let patient = Patient::new().await;
        patient.harm(&format!(
            "UPDATE event SET agent = 3 WHERE agent = 1 AND seq = {ANSWER}"
        ));
        let store = patient.open();
        // What is before it is returned first.
        let before = store.read_all(Cursor::default(), 1000).await.unwrap();
        let last = before.next.unwrap();
        assert!(!before.events.is_empty());
        let refused = store.read_all(last, 1000).await;
        assert!(matches!(refused, Err(Error::NoAgent { .. })), "{refused:?}");
    });
}
