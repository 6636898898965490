//! A snapshot and the events after it fold to the same state as all events, wherever the cut is.

use crate::lab::{Author, Lab, long, run};
use crate::walk::Walk;
use agentd_core::id::Seq;
use agentd_store::{Ack, Append, Damage, Error, Options, SqliteStore, Store as _, Unreadable};
use std::fs;
use std::path::Path;

fn options(lab: &Lab, snapshot_every: u64) -> Options {
    Options {
        snapshot_every,
        ..lab.options()
    }
}

fn delete_derived(dir: &Path) {
    for name in ["derived.db", "derived.db-wal", "derived.db-shm"] {
        drop(fs::remove_file(dir.join(name)));
    }
}

async fn snapshots(lab: &Lab) -> i64 {
    let sql = "SELECT count(*) FROM snapshot";
    lab.derived().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_snapshot_and_its_tail_are_everything_at_every_cut() {
    let walks = if long() { 40 } else { 4 };
    for seed in 1..=walks {
        let lab = Lab::new();
        run(async {
            let mut walk = Walk::new(seed);
            let store = SqliteStore::open(options(&lab, 3)).unwrap();
            for step in 0..45 {
                let (at, events) = walk.step(&store).await;
                for event in events {
                    walk.append_one(&store, at, event).await;
                    // Sometimes the snapshots are behind, as they may be.
                    if walk.dice.roll(3) > 0 {
                        store.wait_caught_up().await.unwrap();
                    }
                    walk.compare(&store, walk.authors[at].agent).await;
                }
                if step % 5 == 0 {
                    walk.compare_old_windows(&store).await;
                }
            }
            store.wait_caught_up().await.unwrap();
            walk.compare_all(&store).await;
            drop(store);
            assert!(snapshots(&lab).await > 20);

            // The same after a restart, and without a single snapshot.
            let store = SqliteStore::open(options(&lab, 3)).unwrap();
            walk.compare_all(&store).await;
            drop(store);
            delete_derived(&lab.dir());
            let store = SqliteStore::open(options(&lab, u64::MAX)).unwrap();
            walk.compare_all(&store).await;
            store.wait_caught_up().await.unwrap();
            walk.compare_all(&store).await;
            drop(store);
            assert_eq!(snapshots(&lab).await, 0);
        });
    }
}

/// A journal with a few hundred events and snapshots of them.
async fn walked(lab: &Lab, seed: u64) -> Walk {
    let mut walk = Walk::new(seed);
    let store = SqliteStore::open(options(lab, 5)).unwrap();
    for _ in 0..60 {
        let (at, events) = walk.step(&store).await;
        for event in events {
            walk.append_one(&store, at, event).await;
        }
    }
    store.wait_caught_up().await.unwrap();
    walk
}

#[test]
fn deleting_what_is_derived_only_costs_time() {
    let lab = Lab::new();
    run(async {
        let mut walk = walked(&lab, 77).await;
        delete_derived(&lab.dir());
        let store = SqliteStore::open(options(&lab, 5)).unwrap();
        walk.compare_all(&store).await;
        store.wait_caught_up().await.unwrap();
        walk.compare_all(&store).await;
        drop(store);
        assert!(snapshots(&lab).await > 0);
    });
}

#[test]
fn damage_to_what_is_derived_stops_nobody() {
    // Nothing of it is a database; its head is; one page in its middle is not what it was; it ends
    // too early.
    type Harm = fn(&mut Vec<u8>);
    let harms: [(&str, Harm); 5] = [
        ("all", |bytes| bytes.fill(0xa5)),
        ("head", |bytes| bytes[..100].fill(0xa5)),
        ("middle", |bytes| bytes[8192..].fill(0xa5)),
        ("end", |bytes| bytes.truncate(8192 * 3 + 100)),
        ("empty", Vec::clear),
    ];
    let lab = Lab::new();
    run(async {
        let mut walk = walked(&lab, 78).await;
        for (name, harm) in harms {
            let hurt = lab.copy();
            let path = hurt.dir().join("derived.db");
            let mut bytes = fs::read(&path).unwrap();
            harm(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let store = SqliteStore::open(options(&hurt, 5))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            walk.compare_all(&store).await;
            store.wait_caught_up().await.unwrap();
            walk.compare_all(&store).await;
            // And it is made again, search and snapshots.
            let query = agentd_store::SearchQuery {
                text: "said".to_owned(),
                agent: None,
                limit: 5,
                before: None,
            };
            let found = store.search(query).await.unwrap();
            assert_eq!(found.hits.len(), 5, "{name}");
            drop(store);
            assert!(snapshots(&hurt).await > 0, "{name}");
            let check: String = hurt
                .derived()
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .unwrap();
            assert_eq!(check, "ok", "{name}");
        }
    });
}

#[test]
fn a_snapshot_of_another_journal_or_with_a_changed_byte_is_not_believed() {
    let lab = Lab::new();
    run(async {
        let mut walk = walked(&lab, 79).await;
        // Each harm to every snapshot there is.
        for harm in [
            "chain = randomblob(32)",
            "state = (SELECT state FROM snapshot ORDER BY seq LIMIT 1)",
            "skeleton = zeroblob(100)",
            "state = CAST(substr(state, 1, 40) || x'00' || substr(state, 42) AS BLOB)",
            "source = '[{\"incarnation\":9,\"n\":9},1,1]'",
            "fold = 0",
        ] {
            let hurt = lab.copy();
            hurt.derived()
                .execute_batch(&format!("UPDATE snapshot SET {harm}"))
                .unwrap();
            let store = SqliteStore::open(options(&hurt, u64::MAX)).unwrap();
            walk.compare_all(&store).await;
            // The writer goes by the same fold.
            let author = &mut walk.authors[0];
            author.fence = store.claim(author.agent, "next").await.unwrap().fence;
            let events = author.turn("and on", "it goes");
            let mut append = Append::new(author.fence, events);
            append.source = Some(agentd_store::Source {
                incarnation: agentd_core::id::Incarnation(3),
                n: 1,
            });
            let ack = store.append(append).await.unwrap();
            let first = author.head.next();
            let last = Seq(author.head.0 + 8);
            assert_eq!(ack, Ack::Committed { first, last });
            assert!(store.verify(None).await.unwrap().is_clean());
        }
    });
}

#[test]
fn an_agent_that_lives_in_short_runs_gets_its_snapshots_too() {
    let lab = Lab::new();
    run(async {
        let mut author = {
            let store = SqliteStore::open(options(&lab, 100)).unwrap();
            Author::create(&store, 1, "one").await
        };
        for run in 0..30 {
            let store = SqliteStore::open(options(&lab, 100)).unwrap();
            let events = author.turn(&format!("run {run}"), "done");
            author.append(&store, events).await;
            store.wait_caught_up().await.unwrap();
        }
        assert_eq!(snapshots(&lab).await, 2);
    });
}

#[test]
fn a_change_behind_a_snapshot_is_noticed_when_the_window_needs_it() {
    // claude-code#53821: a damaged place loads as everything before it, never as something else.
    let lab = Lab::new();
    run(async {
        let mut author = {
            let store = SqliteStore::open(options(&lab, 10)).unwrap();
            let mut author = Author::create(&store, 1, "one").await;
            for n in 0..10 {
                let events = author.turn(&format!("said {n}"), "answered");
                author.append(&store, events).await;
            }
            store.wait_caught_up().await.unwrap();
            author
        };
        // In the fifth prompt, long before the newest snapshot.
        let changed = lab
            .journal()
            .execute(
                "UPDATE event SET body = replace(body, 'said 4', 'said 5') WHERE kind = 'prompt'",
                [],
            )
            .unwrap();
        assert_eq!(changed, 10);
        let store = SqliteStore::open(options(&lab, 10)).unwrap();
        let loaded = store.load(author.agent).await.unwrap();
        let from = Seq(2 + 4 * 8 + 2);
        let damage = Damage {
            from,
            through: author.head,
            reason: Unreadable::BodyChanged,
        };
        assert_eq!(loaded.damage, Some(damage.clone()));
        assert_eq!(loaded.state.head, Seq(from.0 - 1));
        assert_eq!(loaded.window.items().len(), 8);
        let window = store.window(author.agent, author.first, author.head).await;
        assert!(matches!(window, Err(Error::Damaged { seq, .. }) if seq == from));

        // A new owner sets it aside, and then there is nothing wrong any more.
        let claim = store.claim(author.agent, "next").await.unwrap();
        assert_eq!(claim.quarantined, Some(damage));
        author.fence = claim.fence;
        let events = author.turn("and on", "it goes");
        author.append(&store, events).await;
        let loaded = store.load(author.agent).await.unwrap();
        assert_eq!(loaded.damage, None);
        assert_eq!(loaded.window.items().len(), 10);
        store.wait_caught_up().await.unwrap();
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}
