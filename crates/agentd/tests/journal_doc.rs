//! The lists in `docs/journal.md` are complete, and its examples are real.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

#[path = "fixture/golden.rs"]
mod golden;

use agentd_core::event::{Class, Event, Kind, TurnStatus};
use agentd_core::id::Seq;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_store::{Import, Options, ReadQuery, SqliteStore, Store as _};
use serde_json::Value;
use std::io::Cursor;

const DOC: &str = include_str!("../../../docs/journal.md");

/// The n-th block of JSON lines.
fn example(n: usize) -> &'static str {
    let block = DOC.split("```jsonl\n").nth(n + 1).unwrap();
    block.split("```").next().unwrap()
}

/// The first cells of the table after a word in bold, without their quotes.
fn first_column(behind: &str) -> Vec<&'static str> {
    let rows = DOC.split(behind).nth(1).unwrap().lines();
    let rows = rows.skip_while(|line| !line.starts_with("| ---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('`').nth(1).unwrap()).collect()
}

#[test]
fn every_kind_is_listed_in_its_class() {
    let names = |class: Class| {
        let kinds = Kind::ALL.iter().filter(|kind| kind.class() == class);
        kinds.map(|kind| kind.name()).collect::<Vec<_>>()
    };
    assert_eq!(first_column("**Structural**"), names(Class::Structural));
    assert_eq!(first_column("**Content**"), names(Class::Content));
}

#[test]
fn the_example_is_a_journal() {
    let mut state: Option<AgentState> = None;
    let mut written = String::new();
    for line in example(0).lines() {
        let event: Event = serde_json::from_str(line).unwrap();
        written += &format!("{}\n", serde_json::to_string(&event).unwrap());
        let state = state.get_or_insert_with(|| AgentState::new(event.agent));
        assert_eq!(event.seq, state.head.next());
        state.apply(&event);
    }
    let page = DOC.replacen(example(0), &written, 1);
    golden::check("../../../../docs/journal.md", &page);
    let state = state.unwrap();
    assert_eq!(state.anomalies, 0);
    assert_eq!(state.last_turn.unwrap().status, TurnStatus::Completed);
}

#[test]
fn the_export_can_be_imported() {
    let export = example(1);
    let packed = zstd::encode_all(export.as_bytes(), 0).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let read = runtime.block_on(async {
        let store = SqliteStore::open(Options::new(dir.path())).unwrap();
        let order = Import::at(Timestamp::from_millis(0));
        let imported = store
            .import(Box::new(Cursor::new(packed)), order)
            .await
            .unwrap();
        assert!(store.verify(None).await.unwrap().is_clean());
        let all = ReadQuery::all(imported.agent, Seq::ZERO, 100);
        store.read(all).await.unwrap().events
    });
    let lines = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<Value> = lines
        .filter(|line: &Value| line["line"] == "event")
        .collect();
    // And one behind them, which holds it.
    assert_eq!(read.len(), events.len() + 1);
    for (read, written) in read.iter().zip(&events) {
        assert_eq!(read.body.to_value().unwrap().as_ref(), written.get("body"));
    }
}

#[test]
fn one_changed_letter_in_the_export_is_found() {
    let changed = example(1).replacen("Made for", "Meant for", 1);
    let packed = zstd::encode_all(changed.as_bytes(), 0).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let refused = runtime.block_on(async {
        let store = SqliteStore::open(Options::new(dir.path())).unwrap();
        store
            .import(
                Box::new(Cursor::new(packed)),
                Import::at(Timestamp::from_millis(0)),
            )
            .await
            .unwrap_err()
    });
    assert!(refused.to_string().contains("line 6"), "{refused}");
}
