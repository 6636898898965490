//! The tables of opencode.

use super::{RECORD_BYTES, bytes_of, json, pass_on};
use agentd_core::import_history::Record;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

pub(super) const TABLES: [&str; 3] = ["session", "message", "part"];
pub(super) const SESSIONS: &str = "SELECT id FROM session ORDER BY time_created, id";

pub(super) fn records(
    connection: &Connection,
    session: &str,
    each: &mut dyn FnMut(Record<'_>),
) -> rusqlite::Result<()> {
    let bytes = bytes_of(&["directory", "title", "parent_id", "\"revert\""]);
    let mut statement = connection.prepare(&format!(
        "SELECT directory, title, parent_id, time_created, \"revert\" FROM session
         WHERE id = ?1 AND {bytes} <= ?2"
    ))?;
    let mut rows = statement.query(params![session, RECORD_BYTES])?;
    match rows.next()? {
        Some(row) => {
            let found = json!({
                "id": session,
                "directory": row.get::<_, Option<String>>(0)?,
                "title": row.get::<_, Option<String>>(1)?,
                "parentID": row.get::<_, Option<String>>(2)?,
                "time": {"created": row.get::<_, Option<i64>>(3)?},
                "revert": json(row.get::<_, Option<String>>(4)?.as_deref()),
            });
            pass_on(&found, each);
        }
        None => each(Record::TooLong),
    }
    let bytes = bytes_of(&["id", "data"]);
    let mut messages = connection.prepare(&format!(
        "SELECT {bytes}, CASE WHEN {bytes} <= ?2 THEN id END, CASE WHEN {bytes} <= ?2 THEN data END
         FROM message WHERE session_id = ?1 ORDER BY time_created, id"
    ))?;
    let mut rows = messages.query(params![session, RECORD_BYTES])?;
    while let Some(row) = rows.next()? {
        let bytes: i64 = row.get(0)?;
        if bytes > RECORD_BYTES {
            each(Record::TooLong);
            continue;
        }
        let id: String = row.get(1)?;
        let data = row.get::<_, Option<String>>(2)?;
        let Value::Object(mut message) = json(data.as_deref()) else {
            each(Record::Text(b"damaged"));
            continue;
        };
        if bytes.saturating_add(bytes_of_parts(connection, &id)?) > RECORD_BYTES {
            each(Record::TooLong);
            continue;
        }
        let parts = parts_of(connection, &id)?;
        message.insert("id".to_owned(), id.into());
        message.insert("parts".to_owned(), parts.into());
        pass_on(&message.into(), each);
    }
    Ok(())
}

/// The bytes of the parts of a message. Each counts a little more than its data, so that their number has a limit too.
fn bytes_of_parts(connection: &Connection, message: &str) -> rusqlite::Result<i64> {
    let bytes = bytes_of(&["data"]);
    let sql = format!("SELECT coalesce(sum({bytes} + 64), 0) FROM part WHERE message_id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([message], |row| row.get(0))
}

/// The parts of a message. One that is not JSON is a part of no known kind.
fn parts_of(connection: &Connection, message: &str) -> rusqlite::Result<Vec<Value>> {
    let mut statement =
        connection.prepare_cached("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let parts = statement.query_map(params![message], |row| {
        Ok(json(row.get::<_, Option<String>>(0)?.as_deref()))
    })?;
    parts.collect()
}
