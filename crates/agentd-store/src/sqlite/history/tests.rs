//! Tests of reading other programs' databases, with databases made by hand after theirs.

use super::{HistoryDatabase, HistoryError};
use agentd_core::import_history::{Program, Record};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

mod damage;

const GOOSE: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT,
        working_dir TEXT, created_at TIMESTAMP, provider_name TEXT, model_config_json TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
        created_timestamp INTEGER, metadata_json TEXT);";

const OPENCODE: &str = "
    CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, \"revert\" TEXT,
        time_created INTEGER);
    CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);";

/// A database whose newest rows are only in its log, as while its program runs.
fn goose(dir: &Path) -> (PathBuf, Connection) {
    let path = dir.join("sessions.db");
    let writer = Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    writer.execute_batch(GOOSE).unwrap();
    let session = params![
        "20261117_1",
        "A name",
        "user",
        "/work",
        "2026-11-17 12:00:00",
        "{\"model_name\":\"m\"}"
    ];
    let sql =
        "INSERT INTO sessions (id, name, session_type, working_dir, created_at, model_config_json)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    writer.execute(sql, session).unwrap();
    let sql =
        "INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json)
               VALUES ('20261117_1', ?1, ?2, 1794917616, ?3)";
    let text = json!([{"type": "text", "text": "hello"}]).to_string();
    for (role, content) in [("user", text.as_str()), ("assistant", "[{\"type\":")] {
        writer.execute(sql, params![role, content, "{}"]).unwrap();
    }
    (path, writer)
}

fn records(database: &HistoryDatabase, session: &str) -> Vec<Option<Value>> {
    let mut found = Vec::new();
    database.records(session, &mut |record| {
        found.push(match record {
            Record::Text(text) => serde_json::from_slice(text).ok(),
            Record::TooLong => None,
        });
    });
    found
}

fn bytes(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_copy_with_its_log_is_read_and_the_source_is_unchanged() {
    let (source, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, _writer) = goose(source.path());
    let before = bytes(source.path());
    let database = HistoryDatabase::open(Program::Goose, &path, scratch.path()).unwrap();
    assert_eq!(database.sessions().unwrap(), ["20261117_1"]);
    let found = records(&database, "20261117_1");
    assert_eq!(found.len(), 3);
    let session = found[0].as_ref().unwrap();
    assert_eq!(session["model_config"]["model_name"], "m");
    let message = found[1].as_ref().unwrap();
    assert_eq!(message["content"][0]["text"], "hello");
    assert_eq!(found[2], None, "a damaged message is reported");
    assert_eq!(bytes(source.path()), before);
}

#[test]
fn parts_belong_to_their_messages() {
    let (source, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = source.path().join("opencode.db");
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch(OPENCODE).unwrap();
    writer
        .execute_batch(
            "INSERT INTO session VALUES ('ses_1', NULL, '/work', 'A title', NULL, 1);
             INSERT INTO message VALUES ('msg_1', 'ses_1', 1, '{\"role\":\"user\"}');
             INSERT INTO part VALUES ('prt_2', 'msg_1', '{\"type\":\"text\",\"text\":\"two\"}');
             INSERT INTO part VALUES ('prt_1', 'msg_1', '{\"type\":\"text\",\"text\":\"one\"}');
             INSERT INTO part VALUES ('prt_3', 'msg_1', 'damaged');",
        )
        .unwrap();
    let database = HistoryDatabase::open(Program::Opencode, &path, scratch.path()).unwrap();
    let found = records(&database, "ses_1");
    assert_eq!(found[0].as_ref().unwrap()["title"], "A title");
    let message = found[1].as_ref().unwrap();
    assert_eq!(message["id"], "msg_1");
    let parts: Vec<&Value> = message["parts"].as_array().unwrap().iter().collect();
    assert_eq!(
        (parts.len(), &parts[0]["text"], parts[2]),
        (3, &json!("one"), &Value::Null)
    );
}

/// SQL for a text that is too long, all of it after a NUL, where `length` does not see it.
const LONG: &str = "CAST(zeroblob(65 * 1024) AS TEXT)";

/// For each record, whether it was too long.
fn too_long(database: &HistoryDatabase, session: &str) -> Vec<bool> {
    let mut found = Vec::new();
    database.records(session, &mut |record| {
        found.push(matches!(record, Record::TooLong));
    });
    found
}

#[test]
fn columns_of_goose_that_are_too_long_are_not_read() {
    let (source, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, writer) = goose(source.path());
    let change = |sql: &str| writer.execute_batch(&sql.replace("LONG", LONG)).unwrap();
    change("UPDATE sessions SET description = LONG");
    change("UPDATE messages SET metadata_json = LONG WHERE role = 'user'");
    let database = HistoryDatabase::open(Program::Goose, &path, scratch.path()).unwrap();
    assert_eq!(too_long(&database, "20261117_1"), [true, true, false]);
}

#[test]
fn columns_of_opencode_that_are_too_long_are_not_read() {
    let (source, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = source.path().join("opencode.db");
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch(OPENCODE).unwrap();
    let sql = "INSERT INTO session VALUES ('ses_1', NULL, '/work', LONG, NULL, 1);
         INSERT INTO message VALUES ('msg_1', 'ses_1', 1, LONG);
         INSERT INTO message VALUES ('msg_2', 'ses_1', 2, '{}');
         INSERT INTO part VALUES ('prt_1', 'msg_2', LONG);
         INSERT INTO message VALUES ('msg_3', 'ses_1', 3, '{}');
         INSERT INTO part VALUES ('prt_2', 'msg_3', '{}');";
    writer.execute_batch(&sql.replace("LONG", LONG)).unwrap();
    let database = HistoryDatabase::open(Program::Opencode, &path, scratch.path()).unwrap();
    assert_eq!(too_long(&database, "ses_1"), [true, true, true, false]);
}

#[test]
fn what_is_no_database_of_the_program_is_an_error() {
    let (source, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, _writer) = goose(source.path());
    let other = HistoryDatabase::open(Program::Opencode, &path, scratch.path());
    assert!(matches!(other, Err(HistoryError::OtherProgram { .. })));
    let text = source.path().join("text.db");
    fs::write(&text, "not a database, but long enough to have a header").unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let none = HistoryDatabase::open(Program::Goose, &text, scratch.path());
    assert!(matches!(none, Err(HistoryError::Unreadable { .. })));
    let missing = HistoryDatabase::open(Program::Goose, &source.path().join("no"), scratch.path());
    assert!(matches!(missing, Err(HistoryError::Copy { .. })));
}
