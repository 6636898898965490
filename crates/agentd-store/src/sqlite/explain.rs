//! Records every statement that the store runs, and checks its query plan: no frequent statement may scan a
//! whole table or sort.
//!
//! goose#10664, goose#11287, goose#8711: listing scanned every row, and sorts spilled 137 GB.

use crate::sqlite::cursor::{PageEnd, of_position};
use crate::sqlite::schema;
use crate::store::*;
use crate::{Options, SqliteStore};
use agentd_core::event::{
    AgentCreated, AgentRenamed, BeginSource, ConversationBegan, Mode, NewEvent, Note, Origin,
};
use agentd_core::event::{Body, Prompt};
use agentd_core::id::{AgentId, ConversationId, Incarnation, PromptId, Seq, TryId, TurnId};
use agentd_core::message::Block;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Statements by the file they were run on.
static HEARD: Mutex<BTreeSet<(PathBuf, String)>> = Mutex::new(BTreeSet::new());

/// Records what is run on a connection from now on.
pub fn overheard(mut connection: Connection, path: &Path) -> Connection {
    let path = path.to_owned();
    let hear = move |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, sql) = event {
            let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
            heard.insert((path.clone(), sql.to_owned()));
        }
    };
    connection
        .trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(hear))
        .unwrap();
    connection
}

fn heard(file: &Path) -> Vec<String> {
    let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    let of_file = heard.iter().filter(|(path, _)| path == file);
    of_file.map(|(_, sql)| sql.clone()).collect()
}

fn agent(n: u8) -> AgentId {
    AgentId::from_bytes([n; 16])
}

fn conversation(n: u8) -> ConversationId {
    ConversationId::from_bytes([n; 16])
}

fn event(body: impl Into<Body>) -> NewEvent {
    NewEvent {
        at: Timestamp::from_millis(1),
        conversation: conversation(1),
        turn: Some(TurnId::from_bytes([3; 16])),
        body: body.into(),
    }
}

fn began(from: Option<Origin>) -> NewEvent {
    event(ConversationBegan {
        source: BeginSource::Create,
        parent: None,
        from,
        op: None,
    })
}

fn created(name: &str) -> NewEvent {
    let name = name.to_owned();
    let mode = Mode::Persistent;
    event(AgentCreated { name, mode })
}

/// Runs every kind of write that a busy daemon makes.
async fn busy_day(store: &SqliteStore) {
    let request = TryId {
        incarnation: Incarnation(1),
        n: 1,
    };
    for n in 1..=2 {
        let fence = store.claim(agent(n), "owner").await.unwrap().fence;
        let from = (n == 2).then_some(Origin {
            agent: agent(1),
            conversation: conversation(1),
            seq: Seq(4),
        });
        let events = vec![created(&format!("agent-{n}")), began(from)];
        store.append(Append::new(fence, events)).await.unwrap();
        for count in 1..=9 {
            let chunk = DraftChunk {
                request: TryId {
                    n: count,
                    ..request
                },
                offset: 0,
                bytes: b"words".to_vec(),
            };
            store.write_draft(fence, chunk).await.unwrap();
            store.draft(agent(n)).await.unwrap();
            let prompt = Prompt {
                prompt: PromptId::from_bytes([count as u8; 16]),
                blocks: vec![Block::text("words ".repeat(3000))],
            };
            let text = "words".to_owned();
            let mut append = Append::new(
                fence,
                vec![event(prompt), event(Note { about: None, text })],
            );
            append.source = Some(Source {
                incarnation: Incarnation(1),
                n: count,
            });
            append.ends = Some(TryId {
                n: count,
                ..request
            });
            append.expected_generation = Some(1);
            store.append(append).await.unwrap();
            store.wait_caught_up().await.unwrap();
        }
        let name = format!("renamed-{n}");
        let rename = event(AgentRenamed { name });
        store
            .append(Append::new(fence, vec![rename]))
            .await
            .unwrap();
    }
}

/// Runs every kind of read.
async fn looks(store: &SqliteStore) {
    for n in 1..=2 {
        store.load(agent(n)).await.unwrap();
        store.conversations(agent(n)).await.unwrap();
        let window = store.window(agent(n), conversation(1), Seq(7)).await;
        window.unwrap();
        let all = ReadQuery::all(agent(n), Seq(3), 5);
        store.read(all.clone()).await.unwrap();
        let some = ReadQuery {
            conversation: Some(conversation(1)),
            turn: Some(TurnId::from_bytes([3; 16])),
            ..all
        };
        store.read(some).await.unwrap();
        let mut tail = store.tail(agent(n), Seq(3));
        tail.next().await.unwrap();
        store.usage(Some(agent(n))).await.unwrap();
    }
    store.usage(None).await.unwrap();
    store.spending(SpendingQuery::default()).await.unwrap();
    let ids = agent(1)..=agent(2);
    store.agents_between(ids, 5).await.unwrap();
    let ids = TurnId::from_bytes([3; 16])..=TurnId::from_bytes([4; 16]);
    store.turns_between(agent(1), ids, 5).await.unwrap();
    store.idle_resets(5).await.unwrap();
    store.due_schedules(5).await.unwrap();
    store.with_schedules().await.unwrap();
    let turn = TurnId::from_bytes([3; 16]);
    let counted = store.count_turn_ends(agent(1), conversation(1), Seq(9));
    counted.await.unwrap();
    for which in [
        Turns::Newest(3),
        Turns::Nth(1),
        Turns::NthLast(1),
        Turns::Id(turn),
    ] {
        let query = TurnQuery {
            agent: agent(1),
            conversation: conversation(1),
            through: Seq(9),
            which,
        };
        store.turn_ends(query).await.unwrap();
    }
    store.read_all(of_position(4), 5).await.unwrap();
    store.find("agent-1").await.unwrap();
    for agent in [None, Some(agent(1))] {
        let query = SearchQuery {
            text: "words".to_owned(),
            agent,
            limit: 3,
            before: Some(of_position(30)),
        };
        assert_eq!(store.search(query).await.unwrap().hits.len(), 3);
    }
    let cursors = [
        (AgentSort::Recent, None),
        (AgentSort::Name, None),
        (
            AgentSort::Recent,
            Some(
                PageEnd::Recent {
                    updated_at: 7,
                    row: 7,
                }
                .to_cursor()
                .unwrap(),
            ),
        ),
        (
            AgentSort::Name,
            Some(
                PageEnd::Name {
                    name: "b".to_owned(),
                    row: 7,
                }
                .to_cursor()
                .unwrap(),
            ),
        ),
    ];
    for (sort, after) in cursors {
        for mode in [None, Some(Mode::Oneshot)] {
            for phase in [None, Some(Phase::Running)] {
                for name_prefix in [None, Some("a".to_owned())] {
                    let query = AgentQuery {
                        mode,
                        phase,
                        archived: false,
                        name_prefix,
                        sort,
                        limit: 10,
                        after: after.clone(),
                    };
                    store.agents(query).await.unwrap();
                }
            }
        }
    }
    store.with_tasks().await.unwrap();
}

/// SQLite's query plan, line by line; empty for statements that are not queries.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let first = sql.split_whitespace().next().unwrap_or_default();
    if !["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"].contains(&first) {
        return Vec::new();
    }
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let lines = statement.raw_query().mapped(|row| row.get(3));
    lines.collect::<rusqlite::Result<_>>().unwrap()
}

/// Tables that may be scanned: they have one row or a few, however long the journal. A virtual table is
/// queried through its own index.
fn is_fine(line: &str) -> bool {
    let small = ["SCAN follower", "SCAN shard", "SCAN refill", "SCAN purging"];
    let scans = line.starts_with("SCAN") && line != "SCAN CONSTANT ROW";
    let is_small = small.iter().any(|small| line.starts_with(small));
    let is_virtual = line.contains("VIRTUAL TABLE INDEX");
    !line.contains("TEMP B-TREE") && (!scans || is_small || is_virtual)
}

#[test]
fn nothing_that_is_done_often_scans_or_sorts() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        snapshot_every: 3,
        ..Options::new(dir.path())
    };
    let (journal, derived) = (options.journal(), options.derived());
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap()
        .block_on(async {
            let store = SqliteStore::open(options.clone()).unwrap();
            busy_day(&store).await;
            looks(&store).await;
            drop(store);
            // Again with empty caches.
            let store = SqliteStore::open(options).unwrap();
            for n in 1..=2 {
                store.claim(agent(n), "next").await.unwrap();
            }
            looks(&store).await;
        });
    let mut queries = 0;
    let mut wrong = Vec::new();
    for file in [journal, derived] {
        let connection = Connection::open(&file).unwrap();
        for sql in heard(&file) {
            // FTS5 runs statements of its own on its tables.
            if sql.contains("words_0_") || sql.starts_with("--") {
                continue;
            }
            // A migration: it runs once in the life of a file.
            if schema::JOURNAL.iter().any(|step| step.contains(sql.trim())) {
                continue;
            }
            let plan = plan(&connection, &sql);
            queries += usize::from(!plan.is_empty());
            if plan.iter().any(|line| !is_fine(line)) {
                wrong.push(format!("{sql}\n    {}", plan.join("\n    ")));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(queries > 60, "only {queries} queries were recorded");
}

#[test]
fn a_scan_or_a_sort_would_be_found() {
    let connection = Connection::open_in_memory().unwrap();
    let table = "CREATE TABLE event (position INTEGER PRIMARY KEY, seq INTEGER)";
    connection.execute_batch(table).unwrap();
    for (sql, fine) in [
        ("SELECT * FROM event", false),
        ("SELECT * FROM event WHERE position > 1 ORDER BY seq", false),
        ("SELECT * FROM event WHERE position > 1", true),
    ] {
        let plan = plan(&connection, sql);
        assert_eq!(plan.iter().all(|line| is_fine(line)), fine, "{plan:?}");
    }
}
