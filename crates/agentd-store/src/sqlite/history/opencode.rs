//! The tables of opencode.

use super::{RECORD_BYTES, json, pass_on};
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
    let mut statement = connection.prepare(
        "SELECT directory, title, parent_id, time_created, \"revert\" FROM session WHERE id = ?1",
    )?;
    let mut rows = statement.query([session])?;
    if let Some(row) = rows.next()? {
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
    let mut messages = connection
        .prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut rows = messages.query([session])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let data = row.get::<_, Option<String>>(1)?;
        let Value::Object(mut message) = json(data.as_deref()) else {
            each(Record::Text(b"damaged"));
            continue;
        };
        if bytes_of(connection, &id)? > RECORD_BYTES {
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

fn bytes_of(connection: &Connection, message: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(sum(length(data)), 0) FROM part WHERE message_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
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
