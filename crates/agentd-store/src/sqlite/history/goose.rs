//! The tables of goose.

use super::{DAMAGED_RECORD, RECORD_BYTES, bytes_of, json, object, pass_on, salvage};
use agentd_core::import_history::Record;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

pub(super) const TABLES: [&str; 2] = ["sessions", "messages"];
pub(super) const SESSIONS: &str = "SELECT id FROM sessions ORDER BY created_at, id";
/// Where the ids of sessions are, in tables and columns.
pub(super) const IDS: [(&str, &str); 2] = [("sessions", "id"), ("messages", "session_id")];

/// The columns of a session that are used. A version of the program may have only some of them.
const SESSION: [&str; 8] = [
    "id",
    "name",
    "description",
    "session_type",
    "working_dir",
    "created_at",
    "provider_name",
    "model_config_json",
];

/// Passes on what can be read. Returns how many records cannot.
pub(super) fn records(
    connection: &Connection,
    session: &str,
    each: &mut dyn FnMut(Record<'_>),
) -> u64 {
    let mut lost = u64::from(record_of_session(connection, session, each).is_err());
    let (mut last, all) = (0, (0, i64::MAX));
    if messages(connection, Search::AnyPath, session, all, &mut last, each).is_err() {
        let handled = last;
        lost += salvage::rows(connection, "messages", handled, &mut |low, high, last| {
            let path = Search::Table;
            messages(connection, path, session, (low, high), last, each)
        });
    }
    lost
}

/// How messages are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    AnyPath,
    /// Without indexes, which may be damaged as well.
    Table,
}

/// Passes on the messages whose ids are in this range, in order. `last` is the newest one that was handled.
fn messages(
    connection: &Connection,
    search: Search,
    session: &str,
    (low, high): (i64, i64),
    last: &mut i64,
    each: &mut dyn FnMut(Record<'_>),
) -> rusqlite::Result<()> {
    let bytes = bytes_of(&["role", "content_json", "metadata_json"]);
    let within = |column: &str| format!("CASE WHEN {bytes} <= ?2 THEN {column} END");
    let path = match search {
        Search::AnyPath => "",
        Search::Table => "NOT INDEXED",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {bytes}, created_timestamp, {}, {}, {}, id FROM messages {path}
         WHERE session_id = ?1 AND id >= ?3 AND id <= ?4 ORDER BY id",
        within("role"),
        within("content_json"),
        within("metadata_json"),
    ))?;
    // `>` would begin at the row `low`, whose page may be damaged.
    let first = low.saturating_add(1);
    let mut rows = statement.query(params![session, RECORD_BYTES, first, high])?;
    while let Some(row) = rows.next()? {
        let id = row.get(5)?;
        if row.get::<_, i64>(0)? > RECORD_BYTES {
            each(Record::TooLong);
            *last = id;
            continue;
        }
        let content = row.get::<_, Option<String>>(3)?;
        match json(content.as_deref()) {
            Value::Null => each(Record::Text(DAMAGED_RECORD)),
            content => pass_on(
                &json!({
                    "role": row.get::<_, String>(2)?,
                    "created": row.get::<_, i64>(1)?,
                    "content": content,
                    "metadata": json(row.get::<_, Option<String>>(4)?.as_deref()),
                }),
                each,
            ),
        }
        *last = id;
    }
    Ok(())
}

fn record_of_session(
    connection: &Connection,
    session: &str,
    each: &mut dyn FnMut(Record<'_>),
) -> rusqlite::Result<()> {
    let all = connection.prepare("SELECT * FROM sessions")?;
    let names: Vec<&str> = all.column_names().collect();
    let columns = SESSION.into_iter().filter(|name| names.contains(name));
    let columns: Vec<&str> = columns.collect();
    let (list, bytes) = (columns.join(", "), bytes_of(&columns));
    let mut statement = connection.prepare(&format!(
        "SELECT {list} FROM sessions WHERE id = ?1 AND {bytes} <= ?2"
    ))?;
    let mut rows = statement.query(params![session, RECORD_BYTES])?;
    match rows.next()? {
        Some(row) => {
            let mut found = object(row)?;
            let config = found.remove("model_config_json");
            let config = json(config.as_ref().and_then(Value::as_str));
            found.insert("model_config".to_owned(), config);
            pass_on(&found.into(), each);
        }
        None => each(Record::TooLong),
    }
    Ok(())
}
