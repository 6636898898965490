//! The tables of opencode.

use super::{DAMAGED_RECORD, RECORD_BYTES, bytes_of, json, pass_on, salvage};
use agentd_core::import_history::Record;
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const TABLES: [&str; 3] = ["session", "message", "part"];
pub(super) const SESSIONS: &str = "SELECT id FROM session ORDER BY time_created, id";
/// Where the ids of sessions are, in tables and columns.
pub(super) const IDS: [(&str, &str); 2] = [("session", "id"), ("message", "session_id")];

/// Passes on what can be read. Returns how many records cannot.
pub(super) fn records(
    connection: &Connection,
    session: &str,
    each: &mut dyn FnMut(Record<'_>),
) -> u64 {
    let mut lost = u64::from(record_of_session(connection, session, each).is_err());
    // The messages that were passed on, by their rows.
    let mut known = BTreeSet::new();
    let mut handle = |row: &Row<'_>| -> rusqlite::Result<()> {
        let id: i64 = row.get(3)?;
        if !known.contains(&id) {
            message(connection, row, each)?;
            known.insert(id);
        }
        Ok(())
    };
    let bytes = bytes_of(&["id", "data"]);
    let columns = format!(
        "SELECT {bytes}, CASE WHEN {bytes} <= ?2 THEN id END, CASE WHEN {bytes} <= ?2 THEN data END, rowid"
    );
    let in_order =
        format!("{columns} FROM message WHERE session_id = ?1 ORDER BY time_created, id");
    let read = connection.prepare(&in_order).and_then(|mut statement| {
        let mut rows = statement.query(params![session, RECORD_BYTES])?;
        while let Some(row) = rows.next()? {
            handle(row)?;
        }
        Ok(())
    });
    if read.is_err() {
        let by_row = format!(
            "{columns} FROM message NOT INDEXED WHERE session_id = ?1 AND rowid >= ?3 AND rowid <= ?4
             ORDER BY rowid"
        );
        lost += salvage::rows(connection, "message", 0, &mut |low, high, last| {
            let mut statement = connection.prepare_cached(&by_row)?;
            // `>` would begin at the row `low`, whose page may be damaged.
            let first = low.saturating_add(1);
            let mut rows = statement.query(params![session, RECORD_BYTES, first, high])?;
            while let Some(row) = rows.next()? {
                handle(row)?;
                *last = row.get(3)?;
            }
            Ok(())
        });
    }
    lost
}

fn record_of_session(
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
    Ok(())
}

/// Passes on one message with its parts. Parts that cannot be read are one damaged record.
fn message(
    connection: &Connection,
    row: &Row<'_>,
    each: &mut dyn FnMut(Record<'_>),
) -> rusqlite::Result<()> {
    let bytes: i64 = row.get(0)?;
    if bytes > RECORD_BYTES {
        each(Record::TooLong);
        return Ok(());
    }
    let id: String = row.get(1)?;
    let data = row.get::<_, Option<String>>(2)?;
    let Value::Object(mut message) = json(data.as_deref()) else {
        each(Record::Text(DAMAGED_RECORD));
        return Ok(());
    };
    let of_parts = bytes_of_parts(connection, &id);
    if let Ok(of_parts) = of_parts
        && bytes.saturating_add(of_parts) > RECORD_BYTES
    {
        each(Record::TooLong);
        return Ok(());
    }
    let mut parts = Vec::new();
    let read = match of_parts {
        Ok(_) => parts_of(connection, &id, &mut parts),
        // How large they are is not known.
        Err(error) => Err(error),
    };
    message.insert("id".to_owned(), id.into());
    message.insert("parts".to_owned(), parts.into());
    pass_on(&message.into(), each);
    if read.is_err() {
        each(Record::Text(DAMAGED_RECORD));
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

/// Adds the parts of a message, up to the first one that cannot be read. One that is not JSON is a part of no known kind.
fn parts_of(
    connection: &Connection,
    message: &str,
    parts: &mut Vec<Value>,
) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut rows = statement.query(params![message])?;
    while let Some(row) = rows.next()? {
        parts.push(json(row.get::<_, Option<String>>(0)?.as_deref()));
    }
    Ok(())
}
