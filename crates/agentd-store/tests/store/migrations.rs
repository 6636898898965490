//! Journals of every released schema, frozen as they were written: each still folds to what it meant.
//!
//! After an intended change of the fold, `AGENTD_WRITE_GOLDEN=1` records what the frozen journals fold to now.
//! `AGENTD_WRITE_FIXTURE=1` creates the newest schema's journal again, as long as that schema is not released.

use crate::lab::{Author, Lab, agent_id, events_of, run};
use agentd_core::event::After;
use agentd_core::event::{
    AgentArchived, AgentRenamed, ApprovalRequested, CheckpointSet, Direction, Grant,
    IncarnationBegan, PromptsTaken, Purpose, RequestSent, SpecSet, TaskStarted, TurnStarted,
};
use agentd_core::id::{ApprovalId, BootId, CallId, Incarnation, Seq, TaskId};
use agentd_core::spec::AgentSpec;
use agentd_core::state::Resets;
use agentd_core::time::Timestamp;
use agentd_store::{Append, DraftChunk, Source, SqliteStore, Store as _};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn fixture(version: u32) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join(format!("tests/fixtures/v{version}"))
}

fn asked_for(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// The content of a store, as JSON.
async fn told(store: &SqliteStore) -> Value {
    let mut agents = Vec::new();
    for number in 1..=3 {
        let agent = agent_id(number);
        let loaded = store.load(agent).await.unwrap();
        assert_eq!(loaded.damage, None);
        let draft = store.draft(agent).await.unwrap();
        agents.push(json!({
            "state": loaded.state,
            "window": loaded.window.skeleton(),
            "text": loaded.window.last_text(),
            "events": events_of(store, agent).await,
            "draft": draft.map(|draft| (draft.request, String::from_utf8(draft.bytes).unwrap())),
        }));
    }
    Value::Array(agents)
}

/// Checks that everything that was recorded about a journal when it was frozen still holds. The fold may have more fields
/// by now; the record is not changed for that.
fn check_still_said(at: &str, told: &Value, frozen: &Value) {
    match (told, frozen) {
        (Value::Object(told), Value::Object(frozen)) => {
            for (name, frozen) in frozen {
                let told = told.get(name).unwrap_or(&Value::Null);
                check_still_said(&format!("{at}.{name}"), told, frozen);
            }
        }
        (Value::Array(told), Value::Array(frozen)) if told.len() == frozen.len() => {
            for (index, (told, frozen)) in told.iter().zip(frozen).enumerate() {
                check_still_said(&format!("{at}[{index}]"), told, frozen);
            }
        }
        _ => assert_eq!(
            told, frozen,
            "{at}; if this is meant, AGENTD_WRITE_GOLDEN=1 writes it down"
        ),
    }
}

/// An example of everything that the first schema can contain.
async fn write_v1(store: &SqliteStore) {
    let mut one = Author::create(store, 1, "one").await;
    let mut spec = Box::<AgentSpec>::default();
    // Its default at that time.
    spec.limits.max_output_tokens = Some(8192);
    let checkpoint = CheckpointSet {
        label: "init".to_owned(),
        at: None,
    };
    let events = vec![
        one.event(None, SpecSet { spec }),
        one.event(None, checkpoint),
    ];
    one.append(store, events).await;
    for (n, words) in [(1, "the first words"), (2, "the second words")] {
        let mut append = Append::new(one.fence, one.turn(words, "an answer"));
        append.source = Some(Source {
            incarnation: Incarnation(1),
            n,
        });
        store.append(append).await.unwrap();
    }
    let events = one.reset();
    one.append(store, events).await;
    let output = "a long output that is kept apart, ".repeat(400);
    let events = one.tool_turn("look at this", &output, "I see");
    one.append(store, events).await;
    let place = one.here();
    let events = one.compact(Seq(one.head.0 - 2), "what came before");
    one.append(store, events).await;
    let events = one.rewind(place.conversation, place.seq);
    one.append(store, events).await;
    let to = place.conversation;
    let events = one.move_to(to, Direction::Undo);
    one.append(store, events).await;
    let renamed = AgentRenamed {
        name: "uno".to_owned(),
    };
    let events = vec![one.event(None, renamed)];
    one.append(store, events).await;

    // In the middle of a turn, with everything open that can be.
    let mut two = Author::claim(store, 2).await;
    let events = two.forked("two", place);
    two.append(store, events).await;
    let (prompt, mut events) = two.prompt("go on from there");
    let turn = Some(two.turn_id());
    let request = two.next_try();
    let prompts = vec![prompt];
    let (call, boot) = (CallId::new("call"), BootId::from_bytes([9; 16]));
    events.push(two.event(turn, TurnStarted::default()));
    events.push(two.event(turn, PromptsTaken { prompts }));
    let task = TaskStarted {
        task: TaskId::from_bytes([8; 16]),
        call: call.clone(),
        tool: "shell".to_owned(),
        boot,
    };
    let approval = ApprovalRequested::new(ApprovalId::from_bytes([7; 16]), call);
    let sent = RequestSent {
        request,
        purpose: Purpose::Answer,
        grant: Grant::default(),
    };
    events.extend([
        two.event(turn, task),
        two.event(turn, approval),
        two.event(turn, sent),
    ]);
    events.extend(two.prompt("and this when you are done").1);
    two.append(store, events).await;
    let chunk = DraftChunk {
        request,
        offset: 0,
        bytes: b"I was about to s".to_vec(),
    };
    store.write_draft(two.fence, chunk).await.unwrap();

    let mut three = Author::create(store, 3, "three").await;
    let mut events = three.turn("hello", "goodbye");
    let after = After::Crash;
    let incarnation = Incarnation(2);
    events.push(three.event(None, IncarnationBegan::new(incarnation, after)));
    events.push(three.event(None, AgentArchived {}));
    three.append(store, events).await;

    let at = Timestamp::from_millis(1_700_000_000_000);
    store.purge(one.fence, one.first, at).await.unwrap();
}

/// Puts a frozen journal into a directory, as the version that wrote it left it.
fn thaw(version: u32, lab: &Lab) {
    let packed = std::fs::read(fixture(version).join("journal.db.zst")).unwrap();
    let bytes = zstd::stream::decode_all(packed.as_slice()).unwrap();
    std::fs::create_dir_all(lab.dir()).unwrap();
    std::fs::write(lab.dir().join("journal.db"), bytes).unwrap();
}

fn freeze(version: u32, lab: &Lab) {
    let bytes = std::fs::read(lab.dir().join("journal.db")).unwrap();
    let packed = zstd::stream::encode_all(bytes.as_slice(), 19).unwrap();
    std::fs::create_dir_all(fixture(version)).unwrap();
    std::fs::write(fixture(version).join("journal.db.zst"), packed).unwrap();
}

fn schema(journal: &Connection) -> (u32, Vec<String>) {
    let version = journal
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    let mut statement = journal
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    let tables = statement.query_map([], |row| row.get(0)).unwrap();
    (version, tables.collect::<rusqlite::Result<_>>().unwrap())
}

#[test]
fn a_journal_of_the_first_schema_is_what_it_was() {
    if asked_for("AGENTD_WRITE_FIXTURE") {
        let lab = Lab::new();
        run(async { write_v1(&lab.open()).await });
        freeze(1, &lab);
    }
    let lab = Lab::new();
    thaw(1, &lab);
    run(async {
        let store = lab.open();
        let told = told(&store).await;
        let golden = fixture(1).join("agents.json");
        if asked_for("AGENTD_WRITE_GOLDEN") {
            let text = serde_json::to_string_pretty(&told).unwrap() + "\n";
            std::fs::write(&golden, text).unwrap();
        }
        let expected: Value = serde_json::from_slice(&std::fs::read(&golden).unwrap()).unwrap();
        check_still_said("", &told, &expected);
        // No agent had been stopped or reset when that was written.
        for number in 1..=3 {
            let state = store.load(agent_id(number)).await.unwrap().state;
            assert!(!state.stopped && state.failed.is_none());
            assert_eq!(state.resets, Resets::default());
            assert_eq!(state.at_rest, state.incarnation == Incarnation(0));
        }
        let report = store.verify(None).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.agents, 3);

        // It goes on from there, under the counter and the owner it had.
        let mut one = Author::new(
            1,
            agentd_store::Fence {
                agent: agent_id(1),
                epoch: 1,
            },
        );
        let mut append = Append::new(one.fence, one.turn("again", "and again"));
        append.source = Some(Source {
            incarnation: Incarnation(1),
            n: 2,
        });
        let ack = store.append(append.clone()).await.unwrap();
        assert!(matches!(ack, agentd_store::Ack::Repeated { .. }), "{ack:?}");
        append.source = append.source.map(|source| Source { n: 3, ..source });
        store.append(append).await.unwrap();
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn an_old_file_becomes_what_a_new_one_is() {
    let (old, new) = (Lab::new(), Lab::new());
    thaw(1, &old);
    drop((old.open(), new.open()));
    assert_eq!(schema(&old.journal()), schema(&new.journal()));
}

#[test]
fn what_is_frozen_can_be_made_again() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        write_v1(&store).await;
        let golden = std::fs::read(fixture(1).join("agents.json")).unwrap();
        let expected: Value = serde_json::from_slice(&golden).unwrap();
        check_still_said("", &told(&store).await, &expected);
    });
}
